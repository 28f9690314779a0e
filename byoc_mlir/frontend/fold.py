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
from byoc_mlir.frontend.external import has_graphs, inferred_types, is_random
from byoc_mlir.frontend.value import Array, Value


def computed_by_onnx(
    node: onnx.NodeProto,
    schema: OpSchema,
    opsets: Mapping[str, int],
    inputs: Sequence[Value | None],
) -> list[Array | None] | None:
    """The outputs of a node of constants, `None` for each that is left out.

    Returns:
        `None` when the node is not to be folded: an input is not known, the results are random,
        larger than `MAX_FOLDED_BYTES` or no tensors, or ONNX cannot compute them.
    """
    present = [value.constant for value in inputs if value is not None]
    known = [array for array in present if array is not None]
    if len(known) < len(present) or is_random(node):
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
    found = iter(results)
    return [
        _as_array(next(found), _output_of(schema, index)) if name else None
        for index, name in enumerate(node.output)
    ]


def _output_of(schema: OpSchema, index: int) -> OpSchema.FormalParameter:
    return schema.outputs[min(index, len(schema.outputs) - 1)]


def _as_array(result: Array | np.generic, output: OpSchema.FormalParameter) -> Array:
    """Strings as objects, as ONNX's tensors hold them; floats as wide as the op always has them."""
    array = np.asarray(result)
    if array.dtype.kind == "U":
        return array.astype(object)
    return array.astype(np.float32) if output.type_str == "tensor(float)" else array


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
