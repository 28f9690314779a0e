"""Ops that read or write at computed indices: gather, scatter, sort, running sums."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, index, logic, reduce, transform
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dialects.relay.shape import at_most
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.checked import checked
from byoc_mlir.frontend.ops.elementwise import cast, scalar
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Array, NodeRefused, Value
from byoc_mlir.limits import check_constant

_SCATTER_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


def check_places(indices: Value, sizes: Size | Sequence[Size]) -> None:
    """Checks that constant indices are in range; native code clamps computed indices.

    Args:
        sizes: the size of the axis, or a size for each coordinate in the last dimension of
            `indices`.

    Raises:
        VerifyException: an index is out of range.
    """
    if indices.constant is None:
        return
    places = indices.constant.astype(np.int64)
    if isinstance(sizes, Sequence):
        for column, size in enumerate(sizes):
            _check_along(places[..., column], size)
    else:
        _check_along(places, sizes)


def _check_along(places: Array, size: Size) -> None:
    """Checks that the constant indices for one axis are in range."""
    if not places.size:
        return
    least, most = int(places.min()), int(places.max())
    if at_most(-least, size) and at_most(most + 1, size):
        return
    found = least if at_most(most + 1, size) else most
    raise VerifyException(
        f"an index is {found}, accepted are {-size} to {size - 1} on an axis of {size}"
    )


def _coordinates(indices: Value) -> int:
    """Returns the number of coordinates in the last dimension of indices; it must be known."""
    return operator.index(indices.sizes[-1])


@onnx_op("Gather")
def gather(context: NodeContext, data: Value, indices: Value, *, axis: int = 0) -> Value:
    result = context.emit(index.TakeOp, data, indices, axis=axis)
    check_places(indices, data.sizes[axis])
    return result


@onnx_op("GatherElements")
def gather_elements(context: NodeContext, data: Value, indices: Value, *, axis: int = 0) -> Value:
    result = context.emit(index.GatherOp, data, indices, axis=axis)
    check_places(indices, data.sizes[axis])
    return result


@onnx_op("GatherND")
def gather_nd(context: NodeContext, data: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    result = context.emit(index.GatherNdOp, data, indices, batch_dims=batch_dims)
    check_places(indices, data.sizes[batch_dims : batch_dims + _coordinates(indices)])
    return result


@onnx_op("Scatter")
@onnx_op("ScatterElements")
def scatter_elements(
    context: NodeContext,
    data: Value,
    indices: Value,
    updates: Value,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Value:
    result = context.emit(
        index.ScatterElementsOp,
        data,
        indices,
        updates,
        axis=axis,
        reduction=_scatter_reduction(reduction),
    )
    check_places(indices, data.sizes[axis])
    return result


@onnx_op("ScatterND")
def scatter_nd(
    context: NodeContext, data: Value, indices: Value, updates: Value, *, reduction: str = "none"
) -> Value:
    how = _scatter_reduction(reduction)
    result = context.emit(index.ScatterNdOp, data, indices, updates, reduction=how)
    check_places(indices, data.sizes[: _coordinates(indices)])
    return result


def _scatter_reduction(reduction: str) -> str:
    if reduction not in _SCATTER_REDUCTIONS:
        raise NodeRefused(
            f"reduction is '{reduction}', accepted are {', '.join(_SCATTER_REDUCTIONS)}"
        )
    return _SCATTER_REDUCTIONS[reduction]


def _register_running(op_type: str, op: type[index.ScanOp]) -> None:
    @onnx_op(op_type)
    def running(
        context: NodeContext, data: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0
    ) -> Value:
        along = context.count(axis, "axis", least=-data.rank)
        return context.emit(op, data, axis=along, exclusive=bool(exclusive), reverse=bool(reverse))

    del running


_register_running("CumSum", index.CumsumOp)
_register_running("CumProd", index.CumprodOp)


@onnx_op("TopK")
def topk(
    context: NodeContext,
    data: Value,
    k: Value,
    *,
    axis: int = -1,
    largest: int = 1,
    sorted: int = 1,
) -> Sequence[Value]:
    count = context.size(k, "k")
    return context.emit_all(index.TopkOp, data, k=count, axis=axis, is_ascend=not largest)


@onnx_op("OneHot")
def one_hot(
    context: NodeContext, indices: Value, depth: Value, values: Value, *, axis: int = -1
) -> Value:
    count = context.count(depth, "depth", least=0)
    check_constant([count], 8, "the classes of a OneHot")
    rank = indices.rank + 1
    place = normalize_axis(axis, rank)
    wide = cast(context, indices, np.dtype(np.int64))
    wrapped = context.emit(elementwise.FloorModOp, wide, np.int64(count))
    inside = context.emit(
        logic.LogicalAndOp,
        context.emit(logic.GreaterEqualOp, wide, np.int64(-count)),
        context.emit(logic.LessOp, wide, np.int64(count)),
    )
    column = context.emit(transform.ExpandDimsOp, wrapped, axis=[place])
    shape = [count if at == place else 1 for at in range(rank)]
    classes = context.constant(np.arange(count).reshape(shape))
    hot = context.emit(
        logic.LogicalAndOp,
        context.emit(logic.EqualOp, column, classes),
        context.emit(transform.ExpandDimsOp, inside, axis=[place]),
    )
    off, on = context.emit_all(transform.SplitOp, values, sections=[1, 1], axis=0)
    return context.emit(elementwise.WhereOp, hot, on, off)


@onnx_op("Hardmax", since=13)
def hardmax(context: NodeContext, data: Value, *, axis: int = -1) -> Value:
    return _hardmax(context, data, axis)


@onnx_op("Hardmax")
def hardmax_of_rows(context: NodeContext, data: Value, *, axis: int = 1) -> Value:
    if 0 in data.sizes:
        return data
    rows = math.prod(data.sizes[:axis])
    matrix = context.emit(transform.ReshapeOp, data, newshape=[rows, -1])
    result = _hardmax(context, matrix, 1)
    return context.emit(transform.ReshapeOp, result, newshape=data.sizes)


def _hardmax(context: NodeContext, data: Value, axis: int) -> Value:
    count = arith.size_along(data, axis)
    if 0 in data.sizes:
        return data
    place = axis % data.rank
    best = context.emit(reduce.ArgmaxOp, data, axis=[place], keepdims=True)
    classes = arith.positions(context, count, place, data.rank)
    hot = context.emit(logic.EqualOp, best, classes)
    return context.emit(elementwise.WhereOp, hot, scalar(data, 1), scalar(data, 0))


@onnx_op("Trilu")
def trilu(context: NodeContext, data: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    diagonal = 0 if k is None else int(context.number(k, "k"))
    rows, columns = (arith.size_along(data, axis) for axis in (-2, -1))
    distance = arith.diagonals(context, rows, columns)
    kept = context.emit(
        logic.GreaterEqualOp if upper else logic.LessEqualOp, distance, np.int64(diagonal)
    )
    return context.emit(elementwise.WhereOp, kept, data, scalar(data, 0))


@onnx_op("ReverseSequence")
def reverse_sequence(
    context: NodeContext,
    data: Value,
    lengths: Value,
    *,
    batch_axis: int = 1,
    time_axis: int = 0,
) -> Value:
    if not all(0 <= axis < data.rank for axis in (batch_axis, time_axis)):
        raise NodeRefused(
            f"batch_axis is {batch_axis} and time_axis is {time_axis}, accepted are axes of the"
            f" input, which has rank {data.rank}"
        )
    times, batches = data.sizes[time_axis], data.sizes[batch_axis]
    length = cast(context, lengths, np.dtype(np.int64))
    length = checked(context, length, length, "an element of sequence_lens", 0, times)
    shape = [batches if at == batch_axis else 1 for at in range(data.rank)]
    length = context.emit(transform.ReshapeOp, length, newshape=shape)
    time = arith.positions(context, times, time_axis, data.rank)
    back = context.emit(
        elementwise.SubtractOp,
        context.emit(elementwise.SubtractOp, length, np.int64(1)),
        time,
    )
    inside = context.emit(logic.LessOp, time, length)
    place = context.emit(elementwise.WhereOp, inside, back, time)
    place = context.emit(transform.BroadcastToOp, place, shape=data.sizes)
    return context.emit(index.GatherOp, data, place, axis=time_axis)
