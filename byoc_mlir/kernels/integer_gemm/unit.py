"""Vector unit for int8 GEMMs: the processor's instructions, and arithmetic with them.

Operands are packed in groups of 32 bits. With VNNI a group is four bytes: unsigned in A, signed in
B. Otherwise a group is a pair of `i16`, since `pmaddubsw`, the older instruction for bytes,
saturates in 16 bits. The pairs of B may be bytes in memory, which are widened when loaded: half the
traffic, but more instructions. Overlapping groups of four bytes use `pmaddubsw` nevertheless.
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
"""Number of panels above which the unused columns of the last panel do not matter."""

_BETWEEN = NARROW + 1
"""Vectors of a panel for outputs that fill neither narrow nor wide panels."""

_INSTRUCTIONS = {
    4: ("llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.sse2.pmadd.wd"),
    8: ("llvm.x86.avx2.pmadd.ub.sw", "llvm.x86.avx2.pmadd.wd"),
    16: ("llvm.x86.avx512.pmaddubs.w.512", "llvm.x86.avx512.pmaddw.d.512"),
}
"""Instructions that add two products, of bytes and of `i16`, by lanes."""

_MOST_ROWS = 8

_COPIES = 4


@dataclass(frozen=True)
class IntegerUnit:
    """Instructions for vectors of `i32`, and the format of the operands."""

    lanes: int
    registers: int
    has_vnni: bool
    panel_vectors: int = NARROW
    """Vectors of operand B for each tile."""
    widens: bool = False
    """True if the pairs of B are bytes in memory, from which a common shift was subtracted."""
    saturates: bool = False
    """True if the processor has `pmaddubsw`, whose sums saturate."""
    overlaps: bool = False
    """True if `pmaddubsw` multiplies the groups of `OverlappingWords`."""

    @staticmethod
    def of(features: Collection[str]) -> IntegerUnit:
        """Returns the unit of a processor with these features, such as `avx512_vnni`."""
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
        """True if a group is four bytes."""
        return self.has_vnni or self.overlaps

    @property
    def narrows(self) -> bool:
        """True if the processor has the AVX2 instructions of `Saturating`."""
        return self.lanes == AVX2_LANES and (self.has_vnni or self.saturates)

    @property
    def group(self) -> int:
        """Returns the number of elements in a group."""
        return 4 if self.takes_bytes else 2

    @property
    def left_type(self) -> np.dtype[np.uint8] | np.dtype[np.int16]:
        """Returns the element type of operand A in memory, for NumPy."""
        return np.dtype(np.uint8) if self.takes_bytes else np.dtype(np.int16)

    @property
    def left_number(self) -> IntegerType:
        """Returns the element type of operand A in memory, for IR."""
        return i8 if self.takes_bytes else i16

    @property
    def right_type(self) -> np.dtype[np.int8] | np.dtype[np.int16]:
        """Returns the element type of operand B in memory."""
        return np.dtype(np.int8) if self.takes_bytes or self.widens else np.dtype(np.int16)

    @property
    def right_word(self) -> IntegerType:
        """Returns the type of a packed group of operand B in memory."""
        return IntegerType(8 * self.group * self.right_type.itemsize)

    def for_outputs(self, outputs: int) -> IntegerUnit:
        """Returns the unit with the best panel width for `outputs` outputs.

        The panel is the widest one that the outputs fill well, if there are enough registers.
        """
        wide = replace(self, panel_vectors=WIDE)
        is_filled = outputs % wide.panel == 0 or outputs > _MANY_PANELS * wide.panel
        if self.registers >= WIDE_REGISTERS:
            return wide if is_filled else self
        units = (replace(self, panel_vectors=vectors) for vectors in (NARROW, _BETWEEN))
        return min(units, key=lambda unit: unit._instructions(outputs))

    def _instructions(self, outputs: int) -> float:
        """Returns the number of instructions for one packed group of a row: products, sums and
        loads.
        """
        panels = -(-outputs // self.panel)
        return panels * (2 * self.panel_vectors + 1 + self.panel_vectors / self.tile_rows)

    @property
    def panel(self) -> int:
        """Returns the number of columns of a tile; operand B is stored in panels of this width."""
        return self.panel_vectors * self.lanes

    @property
    def tile_rows(self) -> int:
        """Returns the maximum number of rows of a tile.

        Its sums, a row of the panel, a group of A and a product have to fit in the registers; with
        overlapping groups also a row of products and a vector of ones.
        """
        others = self.panel_vectors + 2 + self.panel_vectors * self.overlaps
        return min(_MOST_ROWS, (self.registers - others) // self.panel_vectors)

    @property
    def copies(self) -> int:
        """Returns the unroll factor over groups; 1 if the unit widens, since registers are
        scarce.
        """
        return 1 if self.widens else _COPIES

    @property
    def words(self) -> str:
        """Returns the name of the packed groups' format."""
        if self.overlaps:
            return "overlapping"
        return "bytes" if self.has_vnni else "widened" if self.widens else "pairs"

    @property
    def name(self) -> str:
        """Returns the part of symbols that identifies the unit."""
        return f"{self.words}_{self.panel_vectors}x{self.lanes}"

    def panels_of(self, runs: NDArray[np.integer]) -> Iterator[NDArray[np.integer]]:
        """Splits `[runs, numbers, columns]` into panels `[runs, numbers, panel]`.

        Zeros fill the last panel.
        """
        for first in range(0, runs.shape[2], self.panel):
            some = runs[..., first : first + self.panel]
            missing = self.panel - some.shape[2]
            yield np.pad(some, ((0, 0), (0, 0), (0, missing))) if missing else some

    def words_of(self, panel: NDArray[np.integer]) -> NDArray[np.integer]:
        """Packs a panel `[runs, numbers, panel]` to `[words, panel, group]`, as tiles read it.

        Zeros fill the last group of a run.
        """
        _, numbers, columns = panel.shape
        filled = np.pad(panel, ((0, 0), (0, -numbers % self.group), (0, 0)))
        return filled.reshape(-1, self.group, columns).transpose(0, 2, 1)


@dataclass(frozen=True)
class IntegerVectors:
    """Builder of arithmetic on vectors of `i32`."""

    function: FunctionBuilder
    unit: IntegerUnit

    @property
    def type(self) -> VectorType[IntegerType]:
        """Returns the type of a vector."""
        return vector_type(i32, self.unit.lanes)

    def load(self, address: SSAValue) -> SSAValue:
        """Loads a vector of packed groups."""
        return self.function.load(address, self.type, 1)

    def row(self, address: SSAValue, panel: int) -> list[SSAValue]:
        """Loads a row of `panel` packed groups as vectors."""
        columns = range(0, panel, self.unit.lanes)
        return [self.load(self.function.gep(address, column, i32)) for column in columns]

    def widened_row(self, address: SSAValue, panel: int, shift: SSAValue) -> list[SSAValue]:
        """Loads a row of 2-byte groups, widens them to `i16` pairs, and adds `shift`."""
        function, narrow, wide = self.function, self._of(i8), self._of(i16)

        def widened(column: int) -> SSAValue:
            bytes_ = function.load(function.gep(address, column, i16), narrow, 1)
            numbers = function.insert(unary(llvm.SExtOp, bytes_, wide))
            shifted = function.binary(llvm.AddOp, numbers, broadcast(function, shift, numbers))
            return function.insert(unary(llvm.BitcastOp, shifted, self.type))

        return [widened(column) for column in range(0, panel, self.unit.lanes)]

    def repeated(self, address: SSAValue) -> SSAValue:
        """Loads a packed group and broadcasts it to all lanes."""
        return self.broadcast(self.function.load(address, i32, 1))

    def broadcast(self, word: SSAValue) -> SSAValue:
        """Broadcasts a packed group to all lanes."""
        zeros = self.function.constant(splat(0, self.type), self.type)
        return broadcast(self.function, word, zeros)

    def multiply_add(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue) -> SSAValue:
        """Adds the dot product of two packed groups to `total` in each lane."""
        if self.unit.has_vnni:
            name = f"llvm.x86.avx512.vpdpbusd.{32 * self.unit.lanes}"
            numbers = self._numbers(i8, lhs, rhs)
            return self.function.call_intrinsic(name, [total, *numbers], self.type)
        if self.unit.overlaps:
            return self.add(total, self._words(lhs, rhs))
        return self.add(total, self._pairs(lhs, rhs))

    def _words(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Computes sums of four int8 products; the sums of two products must not saturate."""
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
        """Computes sums of two products, in a form that LLVM matches to one instruction."""
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
        """Reinterprets vectors of packed groups as vectors of their elements."""
        type_ = self._of(element)
        return [self.function.insert(unary(llvm.BitcastOp, word, type_)) for word in words]

    def _of(self, element: IntegerType) -> VectorType[IntegerType]:
        """Returns the type of a vector of the groups' elements."""
        return vector_type(element, self.unit.lanes * self.unit.group)

    def add(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Computes `lhs + rhs`."""
        return self.function.binary(llvm.AddOp, lhs, rhs)
