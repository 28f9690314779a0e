"""Ops at the ends of segments, in a separate domain.

`split` moves nodes with data-dependent output sizes to this domain. Each op returns the maximum
number of entries, and the number of valid ones. `Sizes` passes known sizes to a later segment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import helper

from byoc_mlir.dialects.relay import elementwise, index, logic, reduce
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dims import Size, largest, smallest
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.graphs import STAGE_DOMAIN
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.vision import kept_boxes
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.sizes import size_array, size_content
from byoc_mlir.frontend.value import Value

register_op(STAGE_DOMAIN, "NonMaxSuppression")(kept_boxes)


def places_of(context: NodeContext, mask: Value) -> tuple[Value, Value]:
    """Returns the positions of true elements in a vector of `i1`, in ascending order, and their
    number.
    """
    (size,) = mask.sizes
    ones = cast(context, mask, np.dtype(np.int64))
    running = context.emit(index.CumsumOp, ones, axis=0)
    slot = arith.where(
        context, mask, arith.subtract(context, running, 1), context.size_constant(size)
    )
    places = context.emit(
        index.ScatterNdOp,
        arith.broadcast(context, context.constant(np.int64(0)), (size + 1,)),
        arith.reshape(context, slot, (size, 1)),
        arith.positions(context, size, 0, 1),
    )
    count = arith.reduced(context, reduce.SumOp, ones, [0], keepdims=False)
    return arith.section(context, places, 0, 0, size), count


@register_op(STAGE_DOMAIN, "Sizes")
def sizes(context: NodeContext, *carriers: Value, shape: Sequence[int] = (), to: int) -> Value:
    """Returns the sizes of `carriers` along axis 1, as a tensor of the given shape and type."""
    known = size_array([carrier.sizes[1] for carrier in carriers]).reshape(shape)
    return Value(context.name, size_content(known, helper.tensor_dtype_to_np_dtype(to)))


@register_op(STAGE_DOMAIN, "NonZero")
def nonzero(context: NodeContext, data: Value) -> tuple[Value, Value]:
    mask = data
    if data.dtype != np.bool_:
        mask = context.emit(logic.NotEqualOp, data, data.dtype.type(0))
    size = math.prod(data.sizes)
    places, count = places_of(context, arith.reshape(context, mask, (size,)))
    if not data.rank:
        return context.constant(np.zeros((0, 1), np.int64)), count
    return _coordinates(context, places, data.sizes), count


def _coordinates(context: NodeContext, places: Value, sizes: Sequence[Size]) -> Value:
    """Returns the coordinates of flat positions in a tensor, `[rank, n]`."""
    rows: list[Value] = []
    for size in reversed(sizes):
        divisor = context.size_constant(largest(1, size))
        row = context.emit(elementwise.FloorModOp, places, divisor)
        places = context.emit(elementwise.DivideOp, places, divisor)
        rows.append(arith.reshape(context, row, (1, row.sizes[0])))
    return arith.concatenate(context, rows[::-1], 0)


@register_op(STAGE_DOMAIN, "Compress")
def compress(
    context: NodeContext, data: Value, condition: Value, *, axis: int | None = None
) -> tuple[Value, Value]:
    condition = arith.reshape(context, condition, (math.prod(condition.sizes),))
    if axis is None:
        data, axis = arith.reshape(context, data, (math.prod(data.sizes),)), 0
    axis = normalize_axis(axis, data.rank)
    length = smallest(condition.sizes[0], data.sizes[axis])
    places, count = places_of(context, arith.section(context, condition, 0, 0, length))
    return context.emit(index.TakeOp, data, places, axis=axis), count
