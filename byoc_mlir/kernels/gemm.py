"""Products of a few rows with a panel of weights, kept in registers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.vectors import PANEL_VECTORS, Vectors

Sums = Sequence[SSAValue]
"""For each row of a tile the vectors of its sums."""


def add_products(vectors: Vectors, numbers: Sequence[SSAValue], row: SSAValue, sums: Sums) -> Sums:
    """Adds to the sums of each row the product of its number with a row of a panel.

    Args:
        vectors: where the code goes.
        numbers: for each row the address of its number.
        row: the address of the row of the panel.
        sums: `PANEL_VECTORS` vectors for each number.
    """
    function = vectors.function
    weights = [
        vectors.load(function.gep(row, number * vectors.lanes)) for number in range(PANEL_VECTORS)
    ]
    totals: list[SSAValue] = []
    for place, address in enumerate(numbers):
        number = vectors.broadcast(function.load(address, f32))
        for weight, total in zip(weights, sums[place * PANEL_VECTORS :], strict=False):
            totals.append(vectors.fma(number, weight, total))
    return totals
