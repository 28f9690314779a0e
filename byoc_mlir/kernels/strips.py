"""How a line of pixels, or a piece of one, is cut into strips, each for one kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size
from byoc_mlir.kernels.builder import FunctionBuilder


class Counted(Protocol):
    """The parameters of a kernel that tell how its lines are cut."""

    @property
    def strips(self) -> SSAValue: ...
    @property
    def long_strips(self) -> SSAValue: ...


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

    @property
    def counting(self) -> str:
        """What tells code apart that has no kernels of its own, but counts their strips."""
        return f"{self.suffix}_{self.longest}"

    @abstractmethod
    def of(self, pixels: Size) -> tuple[Size, Size]:
        """The parameters `strips` and `long_strips` for so many pixels."""

    @abstractmethod
    def counts(
        self, function: FunctionBuilder, parameters: Counted, piece: SSAValue
    ) -> Sequence[SSAValue]:
        """How many strips of each of the sizes a piece of a line has."""


class LevelStrips(Strips):
    """Strips of about the same length: the short ones have one pixel less."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.longest, self.longest - 1)

    @property
    def suffix(self) -> str:
        return ""

    @property
    def counting(self) -> str:
        return ""

    def of(self, pixels: Size) -> tuple[Size, Size]:
        strips = -(-pixels // self.longest)
        return strips, pixels - strips * (self.longest - 1)

    def counts(
        self, function: FunctionBuilder, parameters: Counted, piece: SSAValue
    ) -> Sequence[SSAValue]:
        long = parameters.long_strips
        return long, function.subtract(parameters.strips, long)


class RestStrips(Strips):
    """Long strips, and what is left of a line of any length: strips of one pixel, put together for
    the longest kernels there are: of one pixel less than a long strip, and of powers of two.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        powers = {1 << bit for bit in range(self.longest.bit_length())}
        sizes = {self.longest, self.longest - 1, *powers} - {0}
        return tuple(sorted((size for size in sizes if size <= self.longest), reverse=True))

    @property
    def suffix(self) -> str:
        return "_any"

    def of(self, pixels: Size) -> tuple[Size, Size]:
        long = pixels // self.longest
        return long + pixels - long * self.longest, long

    def counts(
        self, function: FunctionBuilder, parameters: Counted, piece: SSAValue
    ) -> Sequence[SSAValue]:
        long = parameters.long_strips
        return self._with_rest(function, long, function.subtract(parameters.strips, long))

    def cut(self, pixels: int) -> Sequence[int]:
        """The strips of so many pixels, the longest first."""
        found: list[int] = []
        for size in self.sizes:
            count, pixels = divmod(pixels, size)
            found += [size] * count
        return found

    def _with_rest(
        self, function: FunctionBuilder, long: SSAValue, rest: SSAValue
    ) -> Sequence[SSAValue]:
        """The counts of long strips and so many pixels."""
        found = [long]
        for size in self.sizes[1:]:
            count, rest = function.divmod(rest, function.integer(size))
            found.append(count)
        return found


@dataclass(frozen=True)
class PieceStrips(RestStrips):
    """Strips of a line in pieces: every piece but the last one has `together` long ones. `strips`
    counts the pixels of a line, `long_strips` those of a piece.
    """

    together: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Few, as only the last piece has a rest."""
        return (self.longest, *(size for size in (4, 1) if size < self.longest))

    @property
    def suffix(self) -> str:
        return "_pieces"

    @property
    def pixels(self) -> int:
        """Those of a piece."""
        return self.longest * self.together

    def of(self, pixels: Size) -> tuple[Size, Size]:
        return pixels, self.pixels

    def counts(
        self, function: FunctionBuilder, parameters: Counted, piece: SSAValue
    ) -> Sequence[SSAValue]:
        most = parameters.long_strips
        left = function.subtract(parameters.strips, function.multiply(piece, most))
        pixels = function.least(left, most)
        long, rest = function.divmod(pixels, function.integer(self.longest))
        return self._with_rest(function, long, rest)


def strips_of(pixels: Size, most: int) -> Strips:
    """How lines of so many pixels are cut for kernels of so many at most; of a symbolic number,
    lines of any length, well for its hint.
    """
    if isinstance(pixels, int):
        return LevelStrips(-(-pixels // -(-pixels // most)))
    expected = hint(pixels)

    def cost(way: RestStrips) -> tuple[int, int]:
        strips = way.cut(expected)
        return len(strips), -min(strips, default=0)

    return min((RestStrips(longest) for longest in range(most, 0, -1)), key=cost)
