"""Strips: the pieces of a row of pixels, each of which one micro-kernel processes."""

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
    """Run-time parameters that determine the strips of a row."""

    @property
    def strips(self) -> SSAValue: ...
    @property
    def long_strips(self) -> SSAValue: ...


@dataclass(frozen=True)
class Strips(ABC):
    """Strategy that cuts rows into strips."""

    longest: int
    """Pixels of a long strip."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Returns the strip sizes of all micro-kernels, the largest first."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """Returns a symbol suffix that distinguishes code for this strategy."""

    @property
    def counting(self) -> str:
        """Returns a symbol suffix for code that only counts strips and has no micro-kernels."""
        return f"{self.suffix}_{self.longest}"

    @abstractmethod
    def of(self, pixels: Size) -> tuple[Size, Size]:
        """Returns the run-time parameters `strips` and `long_strips` for rows of `pixels`
        pixels.
        """

    @abstractmethod
    def counts(
        self, function: FunctionBuilder, parameters: Counted, piece: SSAValue
    ) -> Sequence[SSAValue]:
        """Generates code that computes the number of strips of each size in piece `piece` of a
        row.
        """


class LevelStrips(Strips):
    """Strips of nearly equal length: short strips have one pixel less than long ones."""

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
    """Long strips, then strips for the rest of a row of any length.

    The rest is cut greedily into strips of one pixel less than a long strip, and of powers of two.
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
        """Returns the sizes of the strips for a row of `pixels` pixels, the largest first."""
        found: list[int] = []
        for size in self.sizes:
            count, pixels = divmod(pixels, size)
            found += [size] * count
        return found

    def _with_rest(
        self, function: FunctionBuilder, long: SSAValue, rest: SSAValue
    ) -> Sequence[SSAValue]:
        """Generates code that computes the number of strips of each size, for `long` long strips
        and `rest` further pixels.
        """
        found = [long]
        for size in self.sizes[1:]:
            count, rest = function.divmod(rest, function.integer(size))
            found.append(count)
        return found


@dataclass(frozen=True)
class PieceStrips(RestStrips):
    """Strips of a row that is cut into pieces.

    Every piece but the last has `together` long strips. `strips` is the number of pixels of a row,
    `long_strips` the number of pixels of a piece.
    """

    together: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Returns the strip sizes; these are few, since only the last piece has a rest."""
        return (self.longest, *(size for size in (4, 1) if size < self.longest))

    @property
    def suffix(self) -> str:
        return "_pieces"

    @property
    def pixels(self) -> int:
        """Returns the number of pixels of a piece."""
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
    """Returns the strategy for rows of `pixels` pixels, with strips of at most `most` pixels.

    For a symbolic number, the strategy allows any length and is optimised for the hint.
    """
    if isinstance(pixels, int):
        return LevelStrips(-(-pixels // -(-pixels // most)))
    expected = hint(pixels)

    def cost(way: RestStrips) -> tuple[int, int]:
        strips = way.cut(expected)
        return len(strips), -min(strips, default=0)

    return min((RestStrips(longest) for longest in range(most, 0, -1)), key=cost)
