"""Non-maximum suppression."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import Float64Type, IntegerType, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay.base import sizes_of, tensor_of, tensor_type
from byoc_mlir.dialects.relay.vision import NonMaxSuppressionOp
from byoc_mlir.dims import Size, smallest
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num, Variable

_BLOCK = 256
"""Boxes of a block, whose best rank is cached, so that the search for the best box skips blocks."""

_AT_ONCE = 64
"""Number of kept boxes with which a box is compared before the result is tested."""

_SIDES = 4
_AREA = 4


class _Queue:
    """Priority queue of a class's boxes: the best box comes first; of equal boxes, the one with the
    lowest number.
    """

    def __init__(self, k: Kernel, ranks: Buffer, tops: Buffer):
        self._k, self._ranks, self._tops = k, ranks, tops
        self._type = ranks.type
        assert isinstance(self._type, IntegerType)
        self._none = k.constant(-(1 << (self._type.bitwidth - 1)), self._type)
        """Rank of a box that is not in the queue, below the rank of any score."""

    def set(self, box: Num, score: Num, wanted: Num) -> None:
        """Records the score of a box, and a flag that is set if the box is in the queue."""
        bits = score.to(f64 if self._type == i64 else f32).as_bits()
        rank = self._k.select(bits < 0, self._none - bits, bits)  # both zeros alike
        self._ranks[box] = self._k.select(wanted, rank, self._none)

    def begin(self) -> None:
        """Computes the best rank of each block of boxes, after `set` was called for all boxes."""
        with self._k.loop(self._tops.sizes[0]) as block:
            self._note_top(block)

    def best(self) -> Num:
        """Returns the best rank in the queue."""
        return self._largest(self._k.index(self._tops.sizes[0]), lambda i: self._tops[i])

    def holds(self, best: Num) -> Num:
        """Emits the test that a box of the best rank is in the queue."""
        return best > self._none

    def take(self, best: Num) -> Num:
        """Removes the first box of the best rank from the queue, and returns it."""
        block = self._first(self._tops, self._k.index(0), best)
        box = self._first(self._ranks, block * _BLOCK, best)
        self._ranks[box] = self._none
        self._note_top(block)
        return box

    def _note_top(self, block: Num) -> None:
        first = block * _BLOCK
        count = (self._k.index(self._ranks.sizes[0]) - first).min(_BLOCK)
        self._tops[block] = self._largest(count, lambda i: self._ranks[first + i])

    def _largest(self, count: Num, rank: Callable[[Num], Num]) -> Num:
        k, type_ = self._k, self._type

        def larger(i: Num, so_far: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [Num(k, so_far[0], type_).max(rank(i)).value]

        return Num(k, k.fold(count, [self._none.value], larger)[0], type_)

    def _first(self, ranks: Buffer, start: Num, best: Num) -> Num:
        place = self._k.variable(start)
        with self._k.repeat_while(lambda: ~ranks[place.value].equals(best)):
            place.value = place.value + 1
        return place.value


class _Kept:
    """Boxes of a class that are kept: an array for each of their sides, and one for their areas."""

    def __init__(self, k: Kernel, shapes: Buffer):
        self._k, self._shapes = k, shapes
        self.count = k.variable(k.index(0))

    def add(self, shape: Sequence[Num]) -> None:
        """Adds a box to the kept boxes."""
        for row, value in enumerate(shape):
            self._shapes[row, self.count.value] = value
        self.count.value = self.count.value + 1

    def overlap(self, shape: Sequence[Num], limit: Num) -> Num:
        """Emits the test that the intersection over union of a box and a kept box exceeds
        `limit`.
        """
        k = self._k
        found, done = k.variable(k.constant(0, i32)), k.variable(k.index(0))
        with k.repeat_while(lambda: found.value.equals(0) & (done.value < self.count.value)):
            first = done.value
            count = (self.count.value - first).min(_AT_ONCE)

            def either(i: Num, so_far: Sequence[SSAValue], first: Num = first) -> list[SSAValue]:
                other = [self._shapes[row, first + i] for row in range(_SIDES + 1)]
                overlaps = k.select(_overlap(other, shape, limit), k.constant(1, i32), 0)
                return [Num(k, so_far[0], i32).max(overlaps).value]

            found.value = Num(k, k.fold(count, [k.constant(0, i32).value], either)[0], i32)
            done.value = first + _AT_ONCE
        return ~found.value.equals(0)


def _overlap(one: Sequence[Num], two: Sequence[Num], limit: Num) -> Num:
    heights = one[1].min(two[1]) - one[0].max(two[0])
    widths = one[3].min(two[3]) - one[2].max(two[2])
    common = heights * widths
    union = one[_AREA] + two[_AREA] - common
    real = (heights > 0) & (widths > 0) & (one[_AREA] > 0) & (two[_AREA] > 0) & (union > 0)
    return real & ((common / union) > limit)


def _shape(boxes: Buffer, image: Index, box: Num, *, centered: bool) -> list[Num]:
    """Returns the lower and upper end of a box along y, then along x, and its area."""
    sides: list[Num] = []
    for axis in range(2):
        if centered:
            center, size = (boxes[image, box, i] for i in (1 - axis, 3 - axis))
            sides += [center - size / 2, center + size / 2]
        else:
            one, two = (boxes[image, box, i] for i in (axis, axis + 2))
            sides += [one.min(two), one.max(two)]
    return [*sides, (sides[1] - sides[0]) * (sides[3] - sides[2])]


def _lower_non_max_suppression(op: NonMaxSuppressionOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    images, classes, boxes = sizes_of(op.scores)
    rank = _rank_type(tensor_type(op.scores).element_type)
    shapes = tensor_of(tensor_type(op.boxes).element_type, [_SIDES + 1, boxes])
    blocks = -(-boxes // _BLOCK)
    k = Kernel(op, scratch=[tensor_of(rank, [boxes]), tensor_of(rank, [blocks]), shapes])
    result, count = k.outputs
    with k.sequential(result.sizes) as at:
        result[at] = 0
    written = k.variable(k.index(0))
    most = smallest(boxes, op.max_output_size.value.data)
    if most != 0:
        with k.sequential([images, classes]) as at:
            _suppress(k, op, at, most, written)
    count[()] = written.value.to(i64)
    return k.finish(b)


def _rank_type(score: Attribute) -> Attribute:
    """Returns the integer type whose values, the ranks, order like scores."""
    return i64 if isinstance(score, Float64Type) else i32


def _suppress(
    k: Kernel, op: NonMaxSuppressionOp, at: tuple[Index, ...], most: Size, written: Variable
) -> None:
    """Emits the loop that repeatedly keeps the best box, of one class and image, that overlaps no
    kept box.
    """
    boxes, scores, result = k.inputs[0], k.inputs[1], k.outputs[0]
    ranks, tops, shapes = k.scratch
    limit = k.inputs[2].reshaped(1)[0]
    queue, kept = _Queue(k, ranks, tops), _Kept(k, shapes)
    with k.loop(scores.sizes[2]) as box:
        score = scores[(*at, box)]
        has_threshold = len(k.inputs) > 3
        wanted = score > k.inputs[3].reshaped(1)[0] if has_threshold else ~score.is_nan()
        queue.set(box, score, wanted)
    queue.begin()
    best = k.variable(queue.best())
    with k.repeat_while(lambda: queue.holds(best.value) & (kept.count.value < most)):
        box = queue.take(best.value)
        shape = _shape(boxes, at[0], box, centered=bool(op.center_point_box.value.data))
        with k.when(~kept.overlap(shape, limit)):
            for column, part in enumerate((*at, box)):
                result[written.value, column] = k.index(part).to(i64)
            written.value = written.value + 1
            kept.add(shape)
        best.value = queue.best()


FUNCTIONS: Lowerings = {NonMaxSuppressionOp: _lower_non_max_suppression}
