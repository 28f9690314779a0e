"""The channels that a kernel handles at once: vectors of `f32` in registers, of any floats in
memory."""

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
    """Appends what reads and writes a block of channels to a function."""

    function: FunctionBuilder
    lanes: int

    element: ClassVar[Attribute]
    """What stands in memory."""
    parts: ClassVar[int]
    """The vectors of a block."""

    @property
    def vectors(self) -> Vectors:
        """Arithmetic on one part."""
        return Vectors(self.function, self.lanes)

    @abstractmethod
    def load(self, address: SSAValue, part: int) -> SSAValue:
        """One part of the block at an address."""

    @abstractmethod
    def load_floats(self, address: SSAValue) -> Sequence[SSAValue]:
        """All parts of a block of `f32` at an address."""

    @abstractmethod
    def store(self, parts: Sequence[SSAValue], address: SSAValue) -> None:
        """Writes a block, rounded where it has to be."""


class Floats(Channels):
    """A vector of `f32`."""

    element = f32
    parts = 1

    def load(self, address: SSAValue, part: int) -> SSAValue:
        return self.vectors.load(address)

    def load_floats(self, address: SSAValue) -> Sequence[SSAValue]:
        return [self.vectors.load(address)]

    def store(self, parts: Sequence[SSAValue], address: SSAValue) -> None:
        self.vectors.store(parts[0], address)


class Halves(Channels):
    """Words of two numbers of `bf16`: the even channels are one part, the odd ones the other.

    So one instruction for each part brings it to `f32`: the bits of a `bf16` are the upper half of
    those of the `f32`. For processors with instructions for `bf16`: rounding is one of them, and
    elsewhere a call of a function that is not linked.
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
        """The bits of the numbers, each in a word."""
        for op, type_ in ((llvm.FPTruncOp, bf16), (llvm.BitcastOp, i16), (llvm.ZExtOp, i32)):
            value = self.function.insert(op(value, VectorType(type_, [self.lanes])))
        return value


CHANNELS: dict[Attribute, type[Channels]] = {f32: Floats, bf16: Halves}
"""By what stands in memory."""
