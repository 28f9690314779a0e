"""Copies of some columns of a tile: those of a panel that is not filled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder


@dataclass(frozen=True)
class StridedRows:
    """Rows in memory, equally far from each other."""

    first: SSAValue
    distance: SSAValue
    """In elements."""


@dataclass(frozen=True)
class PartialPanel:
    """Writes copies of so many columns, fewer than a panel has: 1, 2, 4 … of them at once."""

    function: FunctionBuilder
    rows: int
    panel: int
    columns: SSAValue

    def copy(
        self, source: StridedRows, to: StridedRows, element: Attribute, alignment: int
    ) -> None:
        """Writes the code of one copy."""
        function = self.function
        for size in _powers_below(self.panel):
            rest = function.binary(llvm.AndOp, self.columns, function.integer(size))
            piece = partial(self._copy_piece, source, to, VectorType(element, [size]), alignment)
            function.when(function.compare("ne", rest, function.integer(0)), piece)

    def _copy_piece(
        self, source: StridedRows, to: StridedRows, type_: VectorType[Attribute], alignment: int
    ) -> None:
        """Copies a vector of each row, behind what is a multiple of more."""
        function, size = self.function, type_.element_count()
        first = function.binary(llvm.AndOp, self.columns, function.integer(-2 * size))
        for number in range(self.rows):
            here, there = (
                function.gep(
                    rows.first,
                    function.add(function.multiply(rows.distance, number), first),
                    type_.element_type,
                )
                for rows in (source, to)
            )
            function.store(function.load(here, type_, alignment), there, alignment)


def _powers_below(limit: int) -> list[int]:
    """The powers of two that numbers below a limit are made of."""
    return [1 << bit for bit in range((limit - 1).bit_length())]
