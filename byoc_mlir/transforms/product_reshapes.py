"""Rewrite that moves reshapes of matmul results after the element-wise ops that follow."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.operations import operations_in
from byoc_mlir.dialects.relay import RelayOp, elementwise, nn
from byoc_mlir.dialects.relay.base import sizes_of
from byoc_mlir.dialects.relay.shape import tensor_of, tensor_type
from byoc_mlir.dialects.relay.transform import ReshapeOp
from byoc_mlir.transforms.rewriting import constant_array

ELEMENTWISE = tuple(
    kind
    for kind in (*operations_in(vars(elementwise)), nn.ReluOp, nn.LeakyReluOp)
    if issubclass(kind, (elementwise.UnaryOp, elementwise.BroadcastOp))
)

_REACH = 16
"""Maximum number of element-wise ops between a matmul and the reshape."""


def reshape_behind(op: RelayOp) -> tuple[ReshapeOp, Sequence[ReshapeOp]] | None:
    """Rewrites `f(reshape(a · b), c)` to `reshape(f(a · b, c))`.

    Returns the new reshape and the reshapes that it replaces, or `None` for other ops. `c` is a
    scalar, or has one value for each column; the reshape must keep the columns.
    """
    inputs = [value for value in op.operands if constant_array(value) is None]
    reshapes = [one for value in inputs if (one := _reshaped_rows(value)) is not None]
    if not reshapes or len(reshapes) < len(inputs):
        return None
    shape, results = sizes_of(reshapes[0].data), sizes_of(op.results[0])
    if results != sizes_of(reshapes[0].output):
        return None
    if any(sizes_of(one.data) != shape for one in reshapes):
        return None
    constants = [one for value in op.operands if (one := constant_array(value)) is not None]
    if any(one.ndim > len(shape) or one.size not in (1, *one.shape[-1:]) for one in constants):
        return None
    before = {value: one.data for value, one in zip(inputs, reshapes, strict=True)}
    new = type(op).create(
        operands=[before.get(value, value) for value in op.operands],
        properties=dict(op.properties),
        result_types=[tensor_of(tensor_type(op.results[0]).element_type, shape)],
    )
    new.location = op.location
    Rewriter.insert_op(new, InsertPoint.before(op))
    return ReshapeOp(new.results[0], newshape=results), reshapes


def _reshaped_rows(value: SSAValue) -> ReshapeOp | None:
    """Returns the reshape that produces `value` from a matmul's result, perhaps after element-wise
    ops, if it keeps the columns.
    """
    op = value.owner
    if not isinstance(op, ReshapeOp) or sizes_of(op.data)[-1:] != sizes_of(op.output)[-1:]:
        return None
    found = op.data
    for _ in range(_REACH):
        if isinstance(found.owner, nn.DenseOp | nn.MatmulOp):
            return op
        if not isinstance(found.owner, (*ELEMENTWISE, nn.BiasAddOp)):
            return None
        inputs = [one for one in found.owner.operands if constant_array(one) is None]
        found = inputs[0] if inputs else found
    return None
