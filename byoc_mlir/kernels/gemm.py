"""Products of a few rows with a panel of weights, kept in registers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.vectors import Vectors, VectorUnit

Sums = Sequence[SSAValue]
"""For each row of a tile the vectors of its sums."""


def add_products(
    vectors: Vectors, unit: VectorUnit, numbers: Sequence[SSAValue], row: SSAValue, sums: Sums
) -> Sums:
    """Adds to the sums of each row the product of its number with a row of a panel.

    Args:
        vectors: where the code goes.
        unit: how many vectors a panel has.
        numbers: for each row the address of its number.
        row: the address of the row of the panel.
        sums: for each number as many vectors as a panel has.
    """
    function = vectors.function
    columns = range(0, unit.panel, unit.lanes)
    weights = [vectors.load(function.gep(row, column)) for column in columns]
    totals: list[SSAValue] = []
    for place, address in enumerate(numbers):
        number = vectors.broadcast(function.load(address, f32))
        for weight, total in zip(weights, sums[place * len(weights) :], strict=False):
            totals.append(vectors.fma(number, weight, total))
    return totals
