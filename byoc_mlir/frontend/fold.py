"""Constant folding of nodes without a counterpart in the IR, with ONNX's reference evaluator.

All other nodes are folded op by op while they are imported, see `NodeContext.emit_all`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx.checker import ValidationError
from onnx.defs import OpSchema
from onnx.shape_inference import InferenceError

from byoc_mlir.dialects.relay.evaluate import MAX_FOLDED_BYTES
from byoc_mlir.dialects.relay.evaluate.onnx import reference_outputs
from byoc_mlir.dialects.relay.evaluate.proven import unproven
from byoc_mlir.frontend.external import has_graphs, inferred_types
from byoc_mlir.frontend.graphs import standard_name
from byoc_mlir.frontend.value import Array, Value


def computed_by_onnx(
    node: onnx.NodeProto,
    schema: OpSchema,
    opsets: Mapping[str, int],
    inputs: Sequence[Value | None],
) -> list[Array | None] | None:
    """Computes the outputs of a node from constants; an omitted output is `None`.

    Returns:
        `None` if the node should not be folded: an input is not known, the evaluator may be wrong,
        or the results are no tensors or larger than `MAX_FOLDED_BYTES`.
    """
    present = [value.constant for value in inputs if value is not None]
    known = [array for array in present if array is not None]
    if len(known) < len(present) or unproven(node, opsets[standard_name(node.domain)]):
        return None
    limit = max(MAX_FOLDED_BYTES, sum(array.nbytes for array in known))
    if has_graphs(node) or not _least_bytes(node, schema, opsets, inputs) <= limit:
        return None
    try:
        results = reference_outputs(node, known, opsets)
    except Exception:  # it checks no operands; the node stays refused, for the reason at hand
        return None
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        return None
    found = map(_as_array, results)
    return [next(found) if name else None for name in node.output]


def _as_array(result: Array | np.generic) -> Array:
    """Returns a result as an array; strings become objects, as in ONNX's tensors."""
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind == "U" else array


def _least_bytes(
    node: onnx.NodeProto,
    schema: OpSchema,
    opsets: Mapping[str, int],
    inputs: Sequence[Value | None],
) -> float:
    """Returns a lower bound of the outputs' size from ONNX's inference; infinity if it fails.

    A dimension that depends on the data counts as 1.
    """
    try:
        types = inferred_types(node, schema, opsets, inputs)
    except (InferenceError, ValidationError, ValueError):
        return math.inf
    tensors = [type_.tensor_type for type_ in types.values()]
    return sum(math.prod(max(1, dim.dim_value) for dim in t.shape.dim) for t in tensors)
