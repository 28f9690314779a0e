"""Class probabilities from pairwise probabilities (pairwise coupling), as one kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import math
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import ml as relay
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import INDEX, Buffer, Kernel, Num


def _lower_pairwise_coupling(op: relay.PairwiseCouplingOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k, count = Kernel(op), op.classes.value.data
    (data,), (output,) = k.inputs, k.outputs
    rows = shape_of(op.data)[0]
    with k.loops([rows], cost=100 * count * count) as (row,):
        matrix = k.stack(count * count, data.type)
        _fill(k, matrix, data, k.index(row), count)
        _couple(k, matrix, output, k.index(row), count)
    return k.finish(b)


def _fill(k: Kernel, matrix: Buffer, data: Buffer, row: Num, count: int) -> None:
    """Emits the matrix of the quadratic form that the class probabilities minimise."""
    with k.loop(count) as place:
        matrix[place * (count + 1)] = 0.0
    pair = k.variable(k.index(0))
    with k.loop(count) as first, k.loop(count, start=first + 1) as second:
        share = data[row, pair.value]
        rest = 1 - share
        matrix[first * count + second] = 0 - share * rest
        matrix[second * count + first] = 0 - share * rest
        for place, part in ((first, rest), (second, share)):
            own = place * (count + 1)
            matrix[own] = matrix[own] + part * part
        pair.value = pair.value + 1


def _couple(k: Kernel, matrix: Buffer, output: Buffer, row: Num, count: int) -> None:
    """Emits rounds of updates of the class probabilities, until they converge."""
    slopes = k.stack(count, matrix.type)
    with k.loop(count) as place:
        output[row, place] = 1.0 / count
    going, rounds = k.variable(k.constant(1, INDEX)), k.variable(k.index(0))
    with k.repeat_while(lambda: going.value > 0):
        mean = k.variable(k.constant(0.0, matrix.type))
        with k.loop(count) as place:
            slope = k.variable(k.constant(0.0, matrix.type))
            with k.loop(count) as other:
                slope.value = slope.value + matrix[place * count + other] * output[row, other]
            slopes[place] = slope.value
            mean.value = mean.value + output[row, place] * slope.value
        worst = k.variable(k.constant(0.0, matrix.type))
        with k.loop(count) as place:
            worst.value = worst.value.max((slopes[place] - mean.value).unary(math.AbsFOp))
        is_far = ~(worst.value < 0.005 / count)
        with k.when(is_far):
            _round(k, matrix, slopes, output, row, mean.value)
        rounds.value = rounds.value + 1
        is_going = is_far & (rounds.value < max(100, count))
        going.value = k.select(is_going, k.index(1), 0)


def _round(k: Kernel, matrix: Buffer, slopes: Buffer, output: Buffer, row: Num, start: Num) -> None:
    """Emits one round, which updates each class probability after the other."""
    count, mean = slopes.size, k.variable(start)
    with k.loop(count) as place:
        own, slope = matrix[place * (count + 1)], slopes[place]
        step = (mean.value - slope) / own
        size = step + 1.0
        output[row, place] = output[row, place] + step
        mean.value = (mean.value + step * (step * own + slope * 2.0)) / (size * size)
        with k.loop(count) as other:
            slopes[other] = (slopes[other] + step * matrix[place * count + other]) / size
            output[row, other] = output[row, other] / size


FUNCTIONS: Lowerings = {relay.PairwiseCouplingOp: _lower_pairwise_coupling}
