"""Winograd's transforms of one line of a tile."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from byoc_mlir.kernels.vectors import Vectors
from byoc_mlir.kernels.winograd.algorithm import Algorithm


def source_axis(vectors: Vectors, algorithm: Algorithm, d: Sequence[SSAValue]) -> list[SSAValue]:
    """The points of a line of pixels."""
    weighted = vectors.weighted_sum
    points: list[SSAValue] = []
    for point in algorithm.points:
        factors = algorithm.polynomial(without=point)
        even, odd = (weighted(*_terms(factors, d[first:])) for first in (2, 1))
        points += [weighted((1, even), (sign * point, odd)) for sign in (1, -1)]
    factors = algorithm.polynomial()
    zero, infinity = (weighted(*_terms(factors, d[first:])) for first in (0, 1))
    return [zero, *points, infinity]


def _terms(factors: Sequence[float], values: Sequence[SSAValue]) -> list[tuple[float, SSAValue]]:
    """Factors for every other value, the last one, which is 1, first."""
    return list(zip(factors, values[: 2 * len(factors) : 2], strict=True))[::-1]


def result_axis(vectors: Vectors, algorithm: Algorithm, m: Sequence[SSAValue]) -> list[SSAValue]:
    """The results of a line of points."""
    weighted = vectors.weighted_sum
    pairs = list(zip(m[1:-1:2], m[2:-1:2], strict=True))
    sums, differences = (
        [weighted((1, one), (sign, other)) for one, other in pairs] for sign in (1, -1)
    )
    results: list[SSAValue] = []
    for power in range(algorithm.step):
        terms = [
            (point**power, value)
            for point, value in zip(
                algorithm.points, differences if power % 2 else sums, strict=True
            )
        ]
        ends = {0: [(1.0, m[0])], algorithm.step - 1: [(1.0, m[-1])]}.get(power, [])
        results.append(weighted(*ends, *terms))
    return results
