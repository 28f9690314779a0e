"""Blocks of channels for one micro-kernel: `f32` in registers, `f32` or `bf16` in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType, bf16, f32, i16, i32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.vectors import Vectors, shuffled, splat

_HALF_BITS, _UPPER_HALF = 16, -1 << 16


@dataclass(frozen=True)
class Channels(ABC):
    """Builder that appends loads and stores of a block of channels to a function."""

    function: FunctionBuilder
    lanes: int

    element: ClassVar[Attribute]
    """Element type in memory."""
    parts: ClassVar[int]
    """Number of vectors of a block."""

    @property
    def vectors(self) -> Vectors:
        """Returns the builder of arithmetic on one part of a block."""
        return Vectors(self.function, self.lanes)

    @abstractmethod
    def load(self, address: SSAValue, part: int) -> SSAValue:
        """Loads one part of the block at an address."""

    @abstractmethod
    def load_floats(self, address: SSAValue) -> Sequence[SSAValue]:
        """Loads all parts of a block of `f32`."""

    @abstractmethod
    def store(self, parts: Sequence[SSAValue], address: SSAValue) -> None:
        """Stores a block, rounded if necessary."""


class Floats(Channels):
    """Block of one `f32` vector."""

    element = f32
    parts = 1

    def load(self, address: SSAValue, part: int) -> SSAValue:
        return self.vectors.load(address)

    def load_floats(self, address: SSAValue) -> Sequence[SSAValue]:
        return [self.vectors.load(address)]

    def store(self, parts: Sequence[SSAValue], address: SSAValue) -> None:
        self.vectors.store(parts[0], address)


class Halves(Channels):
    """Block of packed pairs of `bf16`: even channels are one part, odd channels the other.

    So one instruction converts each part to `f32`: the bits of a `bf16` are the upper half of the
    `f32`. Requires a processor with `bf16` instructions: on other processors, LLVM would call a
    function that is not linked.
    """

    element = bf16
    parts = 2

    def load(self, address: SSAValue, part: int) -> SSAValue:
        function, type_ = self.function, VectorType(i32, [self.lanes])
        words = function.load(address, type_, 2)
        if part == 0:
            bits = function.constant(splat(_HALF_BITS, type_), type_)
            number = function.binary(llvm.ShlOp, words, bits)
        else:
            mask = function.constant(splat(_UPPER_HALF, type_), type_)
            number = function.binary(llvm.AndOp, words, mask)
        return function.insert(llvm.BitcastOp(number, self.vectors.type))

    def load_floats(self, address: SSAValue) -> Sequence[SSAValue]:
        one, other = self.vectors.row(address, 2 * self.lanes)
        lanes = (range(part, 2 * self.lanes, 2) for part in (0, 1))
        return [shuffled(self.function, one, other, some) for some in lanes]

    def store(self, parts: Sequence[SSAValue], address: SSAValue) -> None:
        function, type_ = self.function, VectorType(i32, [self.lanes])
        even, odd = map(self._rounded, parts)
        bits = function.constant(splat(_HALF_BITS, type_), type_)
        words = function.binary(llvm.OrOp, even, function.binary(llvm.ShlOp, odd, bits))
        function.store(words, address, 2)

    def _rounded(self, value: SSAValue) -> SSAValue:
        """Returns the `bf16` bits of each value, in 32 bits."""
        for op, type_ in ((llvm.FPTruncOp, bf16), (llvm.BitcastOp, i16), (llvm.ZExtOp, i32)):
            value = self.function.insert(op(value, VectorType(type_, [self.lanes])))
        return value


CHANNELS: dict[Attribute, type[Channels]] = {f32: Floats, bf16: Halves}
"""Blocks of channels, by element type in memory."""
