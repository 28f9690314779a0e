"""What a processor has to multiply small integers, and arithmetic with it.

Numbers are multiplied in *words* of 32 bits: four bytes, the left ones without a sign and the right
ones with one, where there is an instruction for that (VNNI); pairs of `i16` elsewhere, since the
instruction that older processors have for bytes saturates in 16 bits. The right ones of such pairs
may be bytes in memory, which are widened on the way to a register: half of what is read, for more
instructions. Words of four bytes that overlap use that instruction nevertheless.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    IntegerType,
    VectorType,
    i8,
    i16,
    i32,
)
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.integer_gemm.epilogue import AVX2_LANES
from byoc_mlir.kernels.ops import unary, vector_type
from byoc_mlir.kernels.vectors import NARROW, WIDE, WIDE_REGISTERS, broadcast, shuffled, splat

WORD_BYTES = 4

_MANY_PANELS = 4
"""With more panels, what is missing in the last one does not count."""

_BETWEEN = NARROW + 1
"""The vectors of a panel for outputs that fill no narrow ones."""

_INSTRUCTIONS = {
    4: ("llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.sse2.pmadd.wd"),
    8: ("llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"),
    16: ("llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx512.pmaddw.d.512"),
}
"""Those for two products of bytes and of `i16`, by lanes."""

_MOST_ROWS = 8

_COPIES = 4


@dataclass(frozen=True)
class IntegerUnit:
    """The vectors of `i32` that code is written for, and how it multiplies."""

    lanes: int
    registers: int
    has_vnni: bool
    panel_vectors: int = NARROW
    """The vectors of right numbers that a tile has."""
    widens: bool = False
    """Whether the right numbers of pairs are bytes in memory, less a number for all of them."""
    saturates: bool = False
    """Whether there is the older instruction for bytes, whose sums saturate."""
    overlaps: bool = False
    """Whether that multiplies the words of `OverlappingWords`."""

    @staticmethod
    def of(features: Collection[str]) -> IntegerUnit:
        """That of a processor with these features, by the kernel's names (`avx512_vnni`)."""
        if "avx512_vnni" in features:
            return IntegerUnit(16, 32, has_vnni=True)
        if "avx512bw" in features:
            return IntegerUnit(16, 32, has_vnni=False, saturates=True)
        if "avx2" in features:
            has_vnni = "avx_vnni" in features
            return IntegerUnit(8, 16, has_vnni, saturates=not has_vnni)
        if "asimd" in features:
            return IntegerUnit(4, 32, has_vnni=False)
        return IntegerUnit(4, 16, has_vnni=False, saturates="ssse3" in features)

    @property
    def takes_bytes(self) -> bool:
        """Whether words are four bytes."""
        return self.has_vnni or self.overlaps

    @property
    def narrows(self) -> bool:
        """Whether there are the instructions of `Saturating`, those of AVX2."""
        return self.lanes == AVX2_LANES and (self.has_vnni or self.saturates)

    @property
    def group(self) -> int:
        """The numbers of a word."""
        return 4 if self.takes_bytes else 2

    @property
    def left_type(self) -> np.dtype[np.uint8] | np.dtype[np.int16]:
        """That of the left numbers in memory."""
        return np.dtype(np.uint8) if self.takes_bytes else np.dtype(np.int16)

    @property
    def left_number(self) -> IntegerType:
        """The same, for code."""
        return i8 if self.takes_bytes else i16

    @property
    def right_type(self) -> np.dtype[np.int8] | np.dtype[np.int16]:
        """That of the right numbers in memory."""
        return np.dtype(np.int8) if self.takes_bytes or self.widens else np.dtype(np.int16)

    @property
    def right_word(self) -> IntegerType:
        """A word of right numbers in memory."""
        return IntegerType(8 * self.group * self.right_type.itemsize)

    def for_outputs(self, outputs: int) -> IntegerUnit:
        """The same vectors with the panels that are best for so many outputs: the widest that they
        fill well, where there are registers for it."""
        wide = replace(self, panel_vectors=WIDE)
        is_filled = outputs % wide.panel == 0 or outputs > _MANY_PANELS * wide.panel
        if self.registers >= WIDE_REGISTERS:
            return wide if is_filled else self
        units = (replace(self, panel_vectors=vectors) for vectors in (NARROW, _BETWEEN))
        return min(units, key=lambda unit: unit._instructions(outputs))

    def _instructions(self, outputs: int) -> float:
        """Those for a word of a row: products, sums, and loads."""
        panels = -(-outputs // self.panel)
        return panels * (2 * self.panel_vectors + 1 + self.panel_vectors / self.tile_rows)

    @property
    def panel(self) -> int:
        """The columns of a tile; the right numbers are stored in such panels."""
        return self.panel_vectors * self.lanes

    @property
    def tile_rows(self) -> int:
        """The most rows of a tile: its sums, a row of the panel, a left word and a product stay in
        registers, and a row of products and ones where words overlap.
        """
        others = self.panel_vectors + 2 + self.panel_vectors * self.overlaps
        return min(_MOST_ROWS, (self.registers - others) // self.panel_vectors)

    @property
    def copies(self) -> int:
        """The words whose products are written one behind the other, without a jump; what widens
        has no register left for that."""
        return 1 if self.widens else _COPIES

    @property
    def words(self) -> str:
        """The kind of its words."""
        if self.overlaps:
            return "overlapping"
        return "bytes" if self.has_vnni else "widened" if self.widens else "pairs"

    @property
    def name(self) -> str:
        """What tells the code of units apart."""
        return f"{self.words}_{self.panel_vectors}x{self.lanes}"

    def panels_of(self, runs: NDArray[np.integer]) -> Iterator[NDArray[np.integer]]:
        """`[runs, numbers, columns]` in panels `[runs, numbers, panel]`, with zeros behind the last
        column."""
        for first in range(0, runs.shape[2], self.panel):
            some = runs[..., first : first + self.panel]
            missing = self.panel - some.shape[2]
            yield np.pad(some, ((0, 0), (0, 0), (0, missing))) if missing else some

    def words_of(self, panel: NDArray[np.integer]) -> NDArray[np.integer]:
        """A panel `[runs, numbers, panel]` in the order in which tiles read it: `[words, panel,
        group]`, with zeros where a run ends before its last word does."""
        _, numbers, columns = panel.shape
        filled = np.pad(panel, ((0, 0), (0, -numbers % self.group), (0, 0)))
        return filled.reshape(-1, self.group, columns).transpose(0, 2, 1)


@dataclass(frozen=True)
class IntegerVectors:
    """Appends arithmetic on vectors of `i32` to a function."""

    function: FunctionBuilder
    unit: IntegerUnit

    @property
    def type(self) -> VectorType[IntegerType]:
        """The type of a vector."""
        return vector_type(i32, self.unit.lanes)

    def load(self, address: SSAValue) -> SSAValue:
        """The words from an address on."""
        return self.function.load(address, self.type, 1)

    def row(self, address: SSAValue, panel: int) -> list[SSAValue]:
        """The vectors of so many words from an address on."""
        columns = range(0, panel, self.unit.lanes)
        return [self.load(self.function.gep(address, column, i32)) for column in columns]

    def widened_row(self, address: SSAValue, panel: int, shift: SSAValue) -> list[SSAValue]:
        """The same of words of two bytes, to each of which an `i16` is added."""
        function, narrow, wide = self.function, self._of(i8), self._of(i16)

        def widened(column: int) -> SSAValue:
            bytes_ = function.load(function.gep(address, column, i16), narrow, 1)
            numbers = function.insert(unary(llvm.SExtOp, bytes_, wide))
            shifted = function.binary(llvm.AddOp, numbers, broadcast(function, shift, numbers))
            return function.insert(unary(llvm.BitcastOp, shifted, self.type))

        return [widened(column) for column in range(0, panel, self.unit.lanes)]

    def repeated(self, address: SSAValue) -> SSAValue:
        """The word at an address, for all lanes."""
        return self.broadcast(self.function.load(address, i32, 1))

    def broadcast(self, word: SSAValue) -> SSAValue:
        """A word for all lanes."""
        zeros = self.function.constant(splat(0, self.type), self.type)
        return broadcast(self.function, word, zeros)

    def multiply_add(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue) -> SSAValue:
        """The total and, in each lane, the products of the numbers of two words."""
        if self.unit.has_vnni:
            name = f"llvm.x86.avx512.vpdpbusd.{32 * self.unit.lanes}"
            numbers = self._numbers(i8, lhs, rhs)
            return self.function.call_intrinsic(name, [total, *numbers], self.type)
        if self.unit.overlaps:
            return self.add(total, self._words(lhs, rhs))
        return self.add(total, self._pairs(lhs, rhs))

    def _words(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Sums of four products of bytes, each two of which do not saturate."""
        names = _INSTRUCTIONS[self.unit.lanes]
        ones = self.function.constant(splat(1, self._pair_type), self._pair_type)
        pairs = self.function.call_intrinsic(
            names[0], self._numbers(i8, left, right), self._pair_type
        )
        return self.function.call_intrinsic(names[1], [pairs, ones], self.type)

    @property
    def _pair_type(self) -> VectorType[IntegerType]:
        return vector_type(i16, 2 * self.unit.lanes)

    def _pairs(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Sums of two products, in the form that LLVM knows as one instruction."""
        function = self.function
        wide = vector_type(i32, 2 * self.unit.lanes)
        one, other = (
            function.insert(unary(llvm.SExtOp, number, wide))
            for number in self._numbers(i16, left, right)
        )
        products = function.binary(llvm.MulOp, one, other)
        even, odd = (
            shuffled(self.function, products, products, range(first, 2 * self.unit.lanes, 2))
            for first in (0, 1)
        )
        return self.add(even, odd)

    def _numbers(self, element: IntegerType, *words: SSAValue) -> list[SSAValue]:
        """Vectors of words as vectors of the numbers in them."""
        type_ = self._of(element)
        return [self.function.insert(unary(llvm.BitcastOp, word, type_)) for word in words]

    def _of(self, element: IntegerType) -> VectorType[IntegerType]:
        """The numbers of a vector of words."""
        return vector_type(element, self.unit.lanes * self.unit.group)

    def add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """`lhs + rhs`."""
        return self.function.binary(llvm.AddOp, lhs, rhs)
