"""The step of a tile, whose sums stay in registers: of floats and of integers, of any lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

Sums: TypeAlias = Sequence[SSAValue]
"""For each row of a tile the vectors of its sums."""

MultiplyAdd: TypeAlias = Callable[[SSAValue, SSAValue, SSAValue], SSAValue]
"""The code of `lhs * rhs + total`, of three vectors."""


def add_products(
    multiply_add: MultiplyAdd,
    numbers: Iterable[SSAValue],
    weights: Sequence[SSAValue],
    sums: Sums,
) -> Sums:
    """Adds to the sums of each row the products of its number with the weights.

    Args:
        multiply_add: writes the code.
        numbers: for each row its number in all lanes; each is asked for when its products are
            written, so that what computes it need not be held in a register for longer.
        weights: vectors, which all rows share.
        sums: for each number as many vectors as there are weights.
    """
    totals: list[SSAValue] = []
    for row, number in enumerate(numbers):
        held = sums[row * len(weights) : (row + 1) * len(weights)]
        totals += [
            multiply_add(number, weight, total) for weight, total in zip(weights, held, strict=True)
        ]
    return totals
