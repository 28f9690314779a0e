"""Arithmetic on values, for functions that build one ONNX op from several `relay` ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import RelayOp, elementwise, index, logic, nn, reduce, transform
from byoc_mlir.dialects.relay.size import ArangeOp
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.value import Value

Number: TypeAlias = Value | float


def _both(lhs: Number, rhs: Number) -> tuple[Value | np.generic, Value | np.generic]:
    like = lhs if isinstance(lhs, Value) else rhs
    assert isinstance(like, Value)
    first, second = (
        side if isinstance(side, Value) else like.dtype.type(side) for side in (lhs, rhs)
    )
    return first, second


def _binary(context: NodeContext, op: type[RelayOp], lhs: Number, rhs: Number) -> Value:
    first, second = _both(lhs, rhs)
    return context.emit(op, first, second)


def add(context: NodeContext, lhs: Number, rhs: Number) -> Value:
    """Returns `lhs + rhs`; a Python number takes the other operand's type."""
    return _binary(context, elementwise.AddOp, lhs, rhs)


def subtract(context: NodeContext, lhs: Number, rhs: Number) -> Value:
    """Returns `lhs - rhs`."""
    return _binary(context, elementwise.SubtractOp, lhs, rhs)


def multiply(context: NodeContext, lhs: Number, rhs: Number) -> Value:
    """Returns `lhs * rhs`."""
    return _binary(context, elementwise.MultiplyOp, lhs, rhs)


def divide(context: NodeContext, lhs: Number, rhs: Number) -> Value:
    """Returns `lhs / rhs`."""
    return _binary(context, elementwise.DivideOp, lhs, rhs)


def power(context: NodeContext, lhs: Number, rhs: Number) -> Value:
    """Returns `lhs` to the power of `rhs`."""
    return _binary(context, elementwise.PowerOp, lhs, rhs)


def maximum(context: NodeContext, lhs: Number, rhs: Number) -> Value:
    """Returns the larger of `lhs` and `rhs`, element by element."""
    return _binary(context, elementwise.MaximumOp, lhs, rhs)


def minimum(context: NodeContext, lhs: Number, rhs: Number) -> Value:
    """Returns the smaller of `lhs` and `rhs`, element by element."""
    return _binary(context, elementwise.MinimumOp, lhs, rhs)


def less(context: NodeContext, lhs: Number, rhs: Number) -> Value:
    """Returns `lhs < rhs`."""
    return _binary(context, logic.LessOp, lhs, rhs)


def where(context: NodeContext, condition: Value, x: Number, y: Number) -> Value:
    """Returns `x` where `condition` is true, else `y`."""
    first, second = _both(x, y)
    return context.emit(elementwise.WhereOp, condition, first, second)


def reduced(
    context: NodeContext,
    op: type[reduce.ReduceOp],
    data: Value,
    axes: Sequence[int],
    *,
    keepdims: bool = True,
) -> Value:
    """Returns the reduction `op` of `data` over `axes`."""
    return context.emit(op, data, axis=axes, keepdims=keepdims)


def reshape(context: NodeContext, data: Value, shape: Sequence[Size]) -> Value:
    """Returns the elements of `data` in another shape; returns `data` itself if it has that
    shape.
    """
    if data.sizes == tuple(shape):
        return data
    return context.emit(transform.ReshapeOp, data, newshape=shape)


def transpose(context: NodeContext, data: Value, axes: Sequence[int]) -> Value:
    """Returns `data` with its dimensions permuted; returns `data` itself if the order is
    unchanged.
    """
    if tuple(axes) == tuple(range(data.rank)):
        return data
    return context.emit(transform.TransposeOp, data, axes=axes)


def channels_second(context: NodeContext, data: Value) -> Value:
    """Returns `[N, …, C]` data as `[N, C, …]`."""
    return transpose(context, data, [0, data.rank - 1, *range(1, data.rank - 1)])


def channels_last(context: NodeContext, data: Value) -> Value:
    """Returns `[N, C, …]` data as `[N, …, C]`."""
    return transpose(context, data, [0, *range(2, data.rank), 1])


def stacked(
    context: NodeContext, a: Value, b: Value, product: Callable[[Value, Value], Value]
) -> Value:
    """Returns the result of `product` on matrices or batches of matrices; vectors are allowed.

    A vector `a` becomes a row, and a vector `b` a column. The result does not have the added
    dimension.
    """
    left = a if a.rank > 1 else context.emit(transform.ExpandDimsOp, a, axis=[0])
    right = b if b.rank > 1 else context.emit(transform.ExpandDimsOp, b, axis=[1])
    whole = product(left, right)
    added = [axis for axis, value in ((-2, a), (-1, b)) if value.rank == 1]
    return context.emit(transform.SqueezeOp, whole, axis=added) if added else whole


def broadcast(context: NodeContext, data: Value, shape: Sequence[Size]) -> Value:
    """Returns `data` broadcast to `shape`."""
    if data.sizes == tuple(shape):
        return data
    return context.emit(transform.BroadcastToOp, data, shape=shape)


def concatenate(context: NodeContext, parts: Sequence[Value], axis: int) -> Value:
    """Returns the parts concatenated along `axis`."""
    return parts[0] if len(parts) == 1 else context.emit(transform.ConcatenateOp, parts, axis=axis)


def biased(context: NodeContext, data: Value, bias: Value | None, axis: int = -1) -> Value:
    """Returns `data` plus a vector along `axis`, if there is one."""
    return data if bias is None else context.emit(nn.BiasAddOp, data, bias, axis=axis)


def interleaved(context: NodeContext, parts: Sequence[Value]) -> Value:
    """Returns the elements of the parts, interleaved along the last axis."""
    *outer, size = parts[0].sizes
    columns = [reshape(context, part, [*part.sizes, 1]) for part in parts]
    return reshape(context, concatenate(context, columns, -1), [*outer, size * len(parts)])


def size_along(data: Value, axis: int) -> Size:
    """Returns the size of an axis.

    Raises:
        VerifyException: the axis does not exist.
    """
    if not -data.rank <= axis < data.rank:
        raise VerifyException(f"axis is {axis}, of a tensor of rank {data.rank}")
    return data.sizes[axis]


def section(context: NodeContext, data: Value, axis: int, begin: Size, end: Size) -> Value:
    """Returns `data[begin:end]` along `axis`."""
    if (begin, end) == (0, data.sizes[axis]):
        return data
    begins: list[Size] = [0] * data.rank
    ends = list(data.sizes)
    begins[axis], ends[axis] = begin, end
    return context.emit(
        transform.StridedSliceOp, data, begin=begins, end=ends, strides=[1] * data.rank
    )


def at(context: NodeContext, data: Value, axis: int, place: int) -> Value:
    """Returns the slice `data[place]` along `axis`; the result does not have that axis."""
    kept = section(context, data, axis, place, place + 1)
    return reshape(context, kept, [size for i, size in enumerate(data.sizes) if i != axis])


def take(context: NodeContext, data: Value, indices: Sequence[int], axis: int) -> Value:
    """Returns the slices of `data` at constant positions along `axis`."""
    places = context.constant(np.asarray(indices, np.int64))
    return context.emit(index.TakeOp, data, places, axis=axis)


def along(context: NodeContext, vector: Value, axis: int, rank: int) -> Value:
    """Returns a vector shaped to broadcast along `axis` of a tensor of rank `rank`."""
    shape = [vector.sizes[0] if i == axis % rank else 1 for i in range(rank)]
    return reshape(context, vector, shape)


def positions(context: NodeContext, count: Size, axis: int, rank: int) -> Value:
    """Returns `0, 1, …, count - 1` along `axis` of a tensor of rank `rank`."""
    if isinstance(count, int):
        numbers = context.constant(np.arange(count))
    else:
        numbers = context.emit(ArangeOp, span=[0, count, 1], dtype=i64)
    return along(context, numbers, axis, rank)


def diagonals(context: NodeContext, rows: Size, columns: Size) -> Value:
    """Returns `column - row` for each element of a matrix: 0 on the main diagonal, 1 above it."""
    column, row = positions(context, columns, 1, 2), positions(context, rows, 0, 2)
    return subtract(context, column, row)
