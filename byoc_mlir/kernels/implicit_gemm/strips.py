"""How a line of pixels is cut into strips, each for one kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Dim, Size
from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.implicit_gemm.parameters import Parameters


@dataclass(frozen=True)
class Strips(ABC):
    """A way to cut lines."""

    longest: int
    """The pixels of a long strip."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """The pixels of all kernels, the longest first."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """What tells code apart that is written for it."""

    @abstractmethod
    def of(self, pixels: Size) -> tuple[Size, Size]:
        """The parameters `strips` and `long_strips` for lines of so many pixels."""

    @abstractmethod
    def counts(
        self, function: FunctionBuilder, parameters: Parameters[SSAValue]
    ) -> tuple[SSAValue, ...]:
        """How many strips of each of the sizes a line has."""


class LevelStrips(Strips):
    """Strips of about the same length: the short ones have one pixel less."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.longest, self.longest - 1)

    @property
    def suffix(self) -> str:
        return ""

    def of(self, pixels: Size) -> tuple[Size, Size]:
        strips = -(-pixels // self.longest)
        return strips, pixels - strips * (self.longest - 1)

    def counts(
        self, function: FunctionBuilder, parameters: Parameters[SSAValue]
    ) -> tuple[SSAValue, ...]:
        long = parameters.long_strips
        return long, function.subtract(parameters.strips, long)


class RestStrips(Strips):
    """Long strips, and what is left of a line of any length: strips of one pixel, of which a kernel
    does as many at once as is a power of two.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        powers = (1 << bit for bit in reversed(range(self.longest.bit_length())))
        return (self.longest, *(power for power in powers if power < self.longest))

    @property
    def suffix(self) -> str:
        return "_any"

    def of(self, pixels: Size) -> tuple[Size, Size]:
        long = pixels // self.longest
        return long + pixels - long * self.longest, long

    def counts(
        self, function: FunctionBuilder, parameters: Parameters[SSAValue]
    ) -> tuple[SSAValue, ...]:
        long = parameters.long_strips
        rest, found = function.subtract(parameters.strips, long), [long]
        for size in self.sizes[1:]:
            bit = function.binary(llvm.AndOp, rest, function.integer(size))
            found.append(function.divide(bit, size))
        return tuple(found)


def strips_of(pixels: Size, most: int) -> Strips:
    """How lines of so many pixels are cut for kernels of so many at most."""
    if isinstance(pixels, Dim):
        expected = hint(pixels)
        passes = {
            longest: sum(
                expected // longest if size == longest else expected % longest // size & 1
                for size in RestStrips(longest).sizes
            )
            for longest in range(1, most + 1)
        }
        return RestStrips(min(passes, key=lambda longest: (passes[longest], -longest)))
    count = -(-pixels // most)
    return LevelStrips(-(-pixels // count))
