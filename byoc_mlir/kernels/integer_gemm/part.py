"""Copies of some columns of a tile, for a panel that is not full."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder


@dataclass(frozen=True)
class StridedRows:
    """Rows in memory at equal distances."""

    first: SSAValue
    distance: SSAValue
    """Distance between rows, in elements."""


@dataclass(frozen=True)
class PartialPanel:
    """Writer of code that copies fewer columns than a panel has, in pieces of 1, 2, 4 … columns."""

    function: FunctionBuilder
    rows: int
    panel: int
    columns: SSAValue

    def copy(
        self, source: StridedRows, to: StridedRows, element: Attribute, alignment: int
    ) -> None:
        """Generates the code of one copy."""
        function = self.function
        for size in _powers_below(self.panel):
            rest = function.binary(llvm.AndOp, self.columns, function.integer(size))
            piece = partial(self._copy_piece, source, to, VectorType(element, [size]), alignment)
            function.when(function.compare("ne", rest, function.integer(0)), piece)

    def _copy_piece(
        self, source: StridedRows, to: StridedRows, type_: VectorType[Attribute], alignment: int
    ) -> None:
        """Copies one piece of each row, a vector; larger pieces are copied before."""
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
    """Returns the powers of two below `limit`, which add up to any number below `limit`."""
    return [1 << bit for bit in range((limit - 1).bit_length())]
