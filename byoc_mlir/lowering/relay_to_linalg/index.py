"""Ops that read or write at computed places, as kernels; an index outside is clamped."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import index as relay
from byoc_mlir.dialects.relay.shape import at_most
from byoc_mlir.dims import Dim, Size
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import INDEX, Buffer, Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.scalars import accumulator_type


def around(shape: Sequence[Size], axis: int) -> tuple[Size, Size, Size]:
    """The elements before, along and after an axis: the shape with three dimensions."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def check_places(*sizes: Size) -> None:
    """Decides that dimensions that are read at computed places have elements."""
    for size in sizes:
        if isinstance(size, Dim) and not at_most(1, size):
            raise UndecidedSizeError(f"computed places in a dimension of {size}, which may be 0")


def _lower_take(op: relay.TakeOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    data, indices = k.inputs
    outer, size, inner = around(data.sizes, op.positive_axis)
    check_places(size)
    places = indices.reshaped(indices.size)
    source = data.reshaped(outer, size, inner)
    target = k.outputs[0].reshaped(outer, indices.size, inner)
    with k.loops([outer, indices.size], cost=inner) as (o, i):
        place = k.position(places[i], size)
        with k.loops([1, inner]) as (_, n):
            target[o, i, n] = source[o, place, n]
    return k.finish(b)


def _lower_gather(op: relay.GatherOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    data, indices = k.inputs
    axis = op.positive_axis
    check_places(data.sizes[axis])
    with k.loops(indices.sizes, cost=2) as at:
        place = k.position(indices[at], data.sizes[axis])
        k.outputs[0][at] = data[(*at[:axis], place, *at[axis + 1 :])]
    return k.finish(b)


def _row_position(
    k: Kernel, rows: Buffer, row: Index, sizes: Sequence[Size], start: Index = 0
) -> Index:
    """`start` and the coordinates in a row, as one position among `sizes`."""
    place = start
    for column, size in enumerate(sizes):
        step = k.position(rows[row, column], size)
        place = step + place * size if isinstance(place, Num) or place else step
    return place


def _lower_gather_nd(op: relay.GatherNdOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    data, indices = k.inputs
    batch, depth = op.batch_dims.value.data, operator.index(indices.sizes[-1])
    batches = math.prod(indices.sizes[:batch])
    count = math.prod(indices.sizes[batch:-1])
    sizes = data.sizes[batch : batch + depth]
    check_places(*sizes)
    inner = math.prod(data.sizes[batch + depth :])
    rows = indices.reshaped(batches * count, depth)
    source = data.reshaped(batches * math.prod(sizes), inner)
    target = k.outputs[0].reshaped(batches, count, inner)
    with k.loops([batches, count], cost=inner + 2) as (n, i):
        place = _row_position(k, rows, k.index(n) * count + i, sizes, n)
        with k.loops([1, inner]) as (_, at):
            target[n, i, at] = source[place, at]
    return k.finish(b)


def _combined(reduction: str, old: Num, new: Num) -> Num:
    if old.type == i1:  # True and True is True
        return old | new if reduction in ("add", "max") else old & new
    match reduction:
        case "add":
            return old + new
        case "mul":
            return old * new
        case "max":
            return old.max(new)
        case _:
            return old.min(new)


def _write(target: Buffer, place: Sequence[Index], new: Num, reduction: str) -> None:
    target[place] = new if reduction == "update" else _combined(reduction, target[place], new)


def _lower_scatter_elements(op: relay.ScatterElementsOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    data, indices, updates = k.inputs
    axis, result = op.positive_axis, k.outputs[0]
    check_places(data.sizes[axis])
    result.copy_from(data)
    with k.sequential(indices.sizes) as at:
        place = k.position(indices[at], data.sizes[axis])
        position = (*at[:axis], place, *at[axis + 1 :])
        _write(result, position, updates[at], op.reduction.data)
    return k.finish(b)


def _lower_scatter_nd(op: relay.ScatterNdOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    data, indices, updates = k.inputs
    depth = operator.index(indices.sizes[-1])
    count, inner = math.prod(indices.sizes[:-1]), math.prod(data.sizes[depth:])
    check_places(*data.sizes[:depth])
    k.outputs[0].copy_from(data)
    rows, source = indices.reshaped(count, depth), updates.reshaped(count, inner)
    target = k.outputs[0].reshaped(math.prod(data.sizes[:depth]), inner)
    with k.sequential([count]) as (i,):
        place = _row_position(k, rows, i, data.sizes[:depth])
        with k.sequential([inner]) as (n,):
            _write(target, (place, n), source[i, n], op.reduction.data)
    return k.finish(b)


def _lower_update_slice(op: relay.UpdateSliceOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op, [op.update, op.starts], initial=op.data)
    update, starts = k.inputs
    shape, axis = k.outputs[0].sizes, op.positive_axis
    entries, outer, inner = shape[0], math.prod(shape[1:axis]), math.prod(shape[axis + 1 :])
    size, new = shape[axis], update.sizes[axis]
    target = k.outputs[0].reshaped(entries, outer, size * inner)
    source = update.reshaped(entries, outer, new * inner)
    with k.sequential([entries]) as (entry,):
        start = starts[entry].to(INDEX)
        if op.is_circular.value.data:
            start = start.floor_remainder(size)
            until_end = k.index(new).min(k.index(size) - start)
            parts = [(k.index(0), until_end, start), (until_end, k.index(new), start - size)]
        else:
            parts = [(k.index(0), k.index(new), start.within(0, size - new))]
        for begin, end, shift in parts:
            first = shift * inner
            with k.sequential([outer]) as (row,), k.loop(end * inner, begin * inner) as place:
                target[entry, row, first + place] = source[entry, row, place]
    return k.finish(b)


def _lower_scan(op: relay.ScanOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    outer, size, inner = shape = around(k.inputs[0].sizes, op.positive_axis)
    data, result = k.inputs[0].reshaped(*shape), k.outputs[0].reshaped(*shape)
    is_sum = isinstance(op, relay.CumsumOp)
    with k.loops([outer, inner], cost=size) as (o, n):
        total = k.variable(k.constant(0 if is_sum else 1, accumulator_type(data.type)))
        with k.loop(size) as step:
            i = k.index(size - 1) - step if op.reverse.value.data else step
            before, element = total.value, data[o, i, n].to(total.value.type)
            total.value = before + element if is_sum else before * element
            result[o, i, n] = before if op.exclusive.value.data else total.value
    return k.finish(b)


FUNCTIONS: Lowerings = {
    relay.CumprodOp: _lower_scan,
    relay.CumsumOp: _lower_scan,
    relay.GatherNdOp: _lower_gather_nd,
    relay.GatherOp: _lower_gather,
    relay.ScatterElementsOp: _lower_scatter_elements,
    relay.ScatterNdOp: _lower_scatter_nd,
    relay.TakeOp: _lower_take,
    relay.UpdateSliceOp: _lower_update_slice,
}
