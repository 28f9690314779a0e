"""Ops that find a number of things at run time, as ops of a static shape.

They are in a domain of their own, to which `split` moves nodes. Each gives as many entries as there
may be, and how many of them count.
"""

from __future__ import annotations

import numpy as np

from byoc_mlir.dialects.relay import index, logic, reduce
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.vision import kept_boxes
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.split import BOUNDED_DOMAIN
from byoc_mlir.frontend.value import Value

register_op(BOUNDED_DOMAIN, "NonMaxSuppression")(kept_boxes)


def places_of(context: NodeContext, mask: Value) -> tuple[Value, Value]:
    """Where a vector of `i1` holds, in ascending order, and at how many places."""
    (size,) = mask.shape
    ones = cast(context, mask, np.dtype(np.int64))
    running = context.emit(index.CumsumOp, ones, axis=0)
    slot = arith.where(context, mask, arith.subtract(context, running, 1), size)
    places = context.emit(
        index.ScatterNdOp,
        context.constant(np.zeros(size + 1, np.int64)),
        arith.reshape(context, slot, (size, 1)),
        context.constant(np.arange(size, dtype=np.int64)),
    )
    count = arith.reduced(context, reduce.SumOp, ones, [0], keepdims=False)
    return arith.section(context, places, 0, 0, size), count


@register_op(BOUNDED_DOMAIN, "NonZero")
def nonzero(context: NodeContext, data: Value) -> tuple[Value, Value]:
    mask = data
    if data.dtype != np.bool_:
        mask = context.emit(logic.NotEqualOp, data, data.dtype.type(0))
    size = int(np.prod(data.shape, dtype=np.int64))
    places, count = places_of(context, arith.reshape(context, mask, (size,)))
    coordinates = context.constant(np.indices(data.shape, np.int64).reshape(data.rank, size))
    return context.emit(index.TakeOp, coordinates, places, axis=1), count


@register_op(BOUNDED_DOMAIN, "Compress")
def compress(
    context: NodeContext, data: Value, condition: Value, *, axis: int | None = None
) -> tuple[Value, Value]:
    if axis is None:
        data, axis = arith.reshape(context, data, (int(np.prod(data.shape)),)), 0
    axis = normalize_axis(axis, data.rank)
    length = min(condition.shape[0], data.shape[axis])
    places, count = places_of(context, arith.section(context, condition, 0, 0, length))
    return context.emit(index.TakeOp, data, places, axis=axis), count
