"""`relay.topk`: insertion for few values of many, else merge sort of the positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import index as relay
from byoc_mlir.dialects.relay.base import one_size, sizes_of, tensor_of
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import smallest
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.index import around
from byoc_mlir.lowering.relay_to_linalg.kernel import INDEX, Buffer, Index, Kernel, Num

_MOST_INSERTED = 64
"""Up to that `k`, the best so far are kept in order by insertion."""


@dataclass(frozen=True)
class _Line:
    """A line of the data, whose first elements in order are found."""

    k: Kernel
    data: Buffer
    values: Buffer
    indices: Buffer
    """All `[outer, elements, inner]`."""
    at: tuple[Index, Index]
    """Where the line is: the outer and the inner position."""
    ascending: bool

    def _before(self, x: Num, y: Num) -> Num:
        """Whether x stands strictly before y; NaN is larger than any number."""
        low, high = (x, y) if self.ascending else (y, x)
        return (low < high) | (high.is_nan() & ~low.is_nan())

    def insert_all(self) -> None:
        """Each element moves up in the list of the best `count`, which is the output itself."""
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
                    """Whether the element before `place` must move down."""
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
        """Merges runs of 1, 2, 4, ... positions from one half of the scratch to the other."""
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


FUNCTIONS: Lowerings = {relay.TopkOp: _lower_topk}
