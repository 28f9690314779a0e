"""Nodes of constants that have no counterpart in the IR: ONNX's reference evaluator computes them.

All others are computed op by op while they are imported, see `NodeContext.emit_all`.
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
    """The outputs of a node of constants, `None` for each that is left out.

    Returns:
        `None` when the node is not to be folded: an input is not known, ONNX is not known to be
        right about it, or the results are larger than `MAX_FOLDED_BYTES` or no tensors.
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
    """Returns strings as objects, as ONNX's tensors hold them."""
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind == "U" else array


def _least_bytes(
    node: onnx.NodeProto,
    schema: OpSchema,
    opsets: Mapping[str, int],
    inputs: Sequence[Value | None],
) -> float:
    """How large the outputs are, as far as ONNX infers it; infinity for a node that is not valid.

    A dimension that is not inferred, since it follows from the data, counts as 1.
    """
    try:
        types = inferred_types(node, schema, opsets, inputs)
    except (InferenceError, ValidationError, ValueError):
        return math.inf
    tensors = [type_.tensor_type for type_ in types.values()]
    return sum(math.prod(max(1, dim.dim_value) for dim in t.shape.dim) for t in tensors)
