"""Rows and inner step of a GEMM tile, for floats and integers and any number of lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder, Index

Sums: TypeAlias = Sequence[SSAValue]
"""Accumulators of a tile: for each row, its vectors in order."""

MultiplyAdd: TypeAlias = Callable[[SSAValue, SSAValue, SSAValue], SSAValue]
"""Function that generates `lhs * rhs + total` for three vectors."""


_LATENCY_SUMS = 8
"""Vectors of sums that a processor adds to in the latency of one multiply-add."""


def short_rows(vectors: int) -> int:
    """Returns the rows of the shortest tile that pays: fewer rows take as long.

    Args:
        vectors: number of vectors in a row of the tile.
    """
    return -(-_LATENCY_SUMS // vectors)


def clamped_rows(function: FunctionBuilder, rows: int, left: SSAValue) -> Sequence[Index]:
    """Returns the numbers of a tile's rows; from `left` rows on, that of the last one."""
    last = function.subtract(left, 1)
    return [0, *(function.least(function.integer(n), last) for n in range(1, rows))]


def add_products(
    multiply_add: MultiplyAdd,
    numbers: Iterable[SSAValue],
    weights: Sequence[SSAValue],
    sums: Sums,
) -> Sums:
    """Adds the outer product of a column of A and a row of B to a tile's accumulators.

    Args:
        multiply_add: function that generates one multiply-accumulate of vectors.
        numbers: yields, for each row, its element of A in all lanes. Each element is loaded just
            before the row's MACs, which keeps the register's live range short.
        weights: the vectors of B, which all rows share.
        sums: for each row, as many vectors as `weights` has.
    """
    totals: list[SSAValue] = []
    for row, number in enumerate(numbers):
        held = sums[row * len(weights) : (row + 1) * len(weights)]
        totals += [
            multiply_add(number, weight, total) for weight, total in zip(weights, held, strict=True)
        ]
    return totals
