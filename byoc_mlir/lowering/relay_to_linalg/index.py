"""Ops that read or write at computed positions, as kernels; an index out of range is clamped.

`relay.topk` is an insertion sort for a small `k`, else a merge sort of the positions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import index as relay
from byoc_mlir.dialects.relay.base import one_size, sizes_of, tensor_of
from byoc_mlir.dialects.relay.shape import at_most, hint
from byoc_mlir.dims import Dim, Size, smallest
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.computed_types import accumulator_type
from byoc_mlir.lowering.relay_to_linalg.kernel import INDEX, Buffer, Index, Kernel, Num

_MOST_INSERTED = 64
"""Maximum `k` for the insertion sort; a larger `k` uses the merge sort."""


@dataclass(frozen=True)
class _Line:
    """Row of the data, of which the first elements in sorted order are computed."""

    k: Kernel
    data: Buffer
    values: Buffer
    indices: Buffer
    """Buffers `data`, `values` and `indices` are all `[outer, elements, inner]`."""
    at: tuple[Index, Index]
    """Outer and inner position of the row."""
    ascending: bool

    def _before(self, x: Num, y: Num) -> Num:
        """Emits the test that x sorts strictly before y; NaN is larger than any number."""
        low, high = (x, y) if self.ascending else (y, x)
        return (low < high) | (high.is_nan() & ~low.is_nan())

    def insert_all(self) -> None:
        """Emits an insertion sort; the output itself is the list of the best `count` elements."""
        k, (o, n) = self.k, self.at
        data, values, indices = self.data, self.values, self.indices
        size, count = data.sizes[1], values.sizes[1]
        with k.loop(size * smallest(1, count)) as i:  # there may be no list
            new = data[o, i, n]
            filled = i.min(count)
            last = (filled - 1).max(0)
            room = i < count
            with k.when(room | self._before(new, values[o, last, n])):
                place = k.variable(filled.min(count - 1))

                def moves(place: Index, new: Num) -> Num:
                    """Emits the condition that the element before `place` must move down."""
                    above = k.index(place) - 1
                    first = above.max(0)
                    return (above >= 0) & self._before(new, values[o, first, n])

                with k.repeat_while(lambda: moves(place.value, new)):
                    to = place.value
                    values[o, to, n] = values[o, to - 1, n]
                    indices[o, to, n] = indices[o, to - 1, n]
                    place.value = to - 1
                values[o, place.value, n] = new
                indices[o, place.value, n] = i.to(i64)

    def sort(self) -> None:
        """Emits a merge sort of positions.

        Runs of 1, 2, 4, ... positions are merged from one half of the scratch memory into the
        other.
        """
        k, (o, n) = self.k, self.at
        data, values, indices = self.data, self.values, self.indices
        size, count = data.sizes[1], values.sizes[1]
        places = k.scratch[0]
        row = k.index(o) * data.sizes[2] + n
        with k.loop(size) as i:
            places[row, 0, i] = i.to(i64)
        source = k.variable(k.index(0))
        width = k.variable(k.index(1))
        with k.repeat_while(lambda: width.value < size):
            half, run = source.value, width.value
            with k.loop(size, step=run * 2) as start:
                middle, end = (start + run).min(size), (start + run * 2).min(size)
                left, right = k.variable(start), k.variable(middle)
                with k.loop(end, start=start) as to:
                    one = places[row, half, left.value.min(size - 1)]
                    two = places[row, half, right.value.min(size - 1)]
                    later = self._before(data[o, two.to(INDEX), n], data[o, one.to(INDEX), n])
                    takes_right = (left.value >= middle) | ((right.value < end) & later)
                    places[row, 1 - half, to] = k.select(takes_right, two, one)
                    step = k.select(takes_right, k.index(1), 0)
                    right.value = right.value + step
                    left.value = left.value + (1 - step)
            source.value = 1 - half
            width.value = run * 2
        with k.loop(count) as i:
            place = places[row, source.value, i]
            indices[o, i, n] = place
            values[o, i, n] = data[o, place.to(INDEX), n]


def _lower_topk(op: relay.TopkOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    outer, size, inner = around(sizes_of(op.data), op.positive_axis)
    count, ascending = one_size(op.k), bool(op.is_ascend.value.data)
    inserted = hint(count) <= _MOST_INSERTED
    scratch = [] if inserted else [tensor_of(i64, [outer * inner, 2, size])]
    k = Kernel(op, scratch=scratch)
    data = k.inputs[0].reshaped(outer, size, inner)
    values, indices = (output.reshaped(outer, count, inner) for output in k.outputs)
    if count == 0:
        return k.finish(b)
    with k.loops([outer, inner], cost=10 * size) as (o, n):
        line = _Line(k, data, values, indices, (o, n), ascending)
        if inserted:
            line.insert_all()
        else:
            line.sort()
    return k.finish(b)


def around(shape: Sequence[Size], axis: int) -> tuple[Size, Size, Size]:
    """Returns the numbers of elements before, along and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def check_places(*sizes: Size) -> None:
    """Checks that dimensions which are indexed at run time have elements.

    Raises:
        UndecidedSizeError: a symbolic dimension may be 0.
    """
    for size in sizes:
        if isinstance(size, Dim) and not at_most(1, size):
            raise UndecidedSizeError(f"computed positions in a dimension of {size}, which may be 0")


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
    """Emits the linear position of an element, whose coordinates are in a row of indices.

    Args:
        sizes: sizes of the dimensions that the row indexes.
        start: linear position in the dimensions before these, if there are any.
    """
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
    is_sum = op.name == relay.CumsumOp.name
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
    relay.TopkOp: _lower_topk,
    relay.UpdateSliceOp: _lower_update_slice,
}
