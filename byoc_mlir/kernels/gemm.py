"""Products of a few rows with a panel of weights, kept in registers: of floats and of integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from xdsl.ir import SSAValue

Sums = Sequence[SSAValue]
"""For each row of a tile the vectors of its sums."""


class PanelVectors(Protocol):
    """Vectors of the numbers of a panel, and of their sums."""

    def row(self, address: SSAValue, panel: int) -> Sequence[SSAValue]:
        """A row of a panel of so many numbers."""
        ...

    def repeated(self, address: SSAValue) -> SSAValue:
        """The number at an address, for all lanes."""
        ...

    def multiply_add(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue) -> SSAValue:
        """The total and the products of two vectors."""
        ...


def add_products(
    vectors: PanelVectors, panel: int, numbers: Iterable[SSAValue], row: SSAValue, sums: Sums
) -> Sums:
    """Adds to the sums of each row the product of its number with a row of a panel.

    Args:
        vectors: where the code goes.
        panel: how many numbers a row of it has.
        numbers: for each row the address of its number.
        row: the address of the row of the panel.
        sums: for each number as many vectors as a panel has.
    """
    weights = vectors.row(row, panel)
    totals: list[SSAValue] = []
    for place, address in enumerate(numbers):
        number = vectors.repeated(address)
        for weight, total in zip(weights, sums[place * len(weights) :], strict=False):
            totals.append(vectors.multiply_add(number, weight, total))
    return totals
