"""Strips: the pieces of a row of pixels, each of which one micro-kernel processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder


@dataclass(frozen=True)
class Strips(ABC):
    """Strategy that cuts rows into strips."""

    longest: int
    """Pixels of a long strip."""

    suffix = "_any"
    """Symbol suffix that distinguishes code for this strategy."""

    is_clamped = False
    """True if the last one of `sizes` is the maximum size of a strip, not the exact one."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Returns the strip sizes of all micro-kernels, the largest first."""

    @abstractmethod
    def counts(
        self, function: FunctionBuilder, pixels: SSAValue, longest: SSAValue
    ) -> Sequence[SSAValue]:
        """Generates code that computes the number of strips of each size for `pixels` pixels.

        Args:
            longest: the strategy's longest strip, as a run-time value.
        """


class LevelStrips(Strips):
    """Strips of nearly equal length: short strips have one pixel less than long ones."""

    suffix = ""

    @staticmethod
    def of(pixels: int, most: int) -> LevelStrips:
        """Returns the strips for rows of `pixels` pixels; a strip has at most `most` pixels."""
        return LevelStrips(-(-pixels // -(-pixels // most)))

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.longest, self.longest - 1)

    def counts(
        self, function: FunctionBuilder, pixels: SSAValue, longest: SSAValue
    ) -> Sequence[SSAValue]:
        shorter = function.subtract(longest, 1)
        count = function.divide(function.add(pixels, shorter), longest)
        long = function.subtract(pixels, function.multiply(count, shorter))
        return long, function.subtract(count, long)


@dataclass(frozen=True)
class ClampedStrips(Strips):
    """Strips for rows of any length: long ones, then short ones, of which the last may have fewer
    pixels than its micro-kernel, which repeats the last pixel.
    """

    short: int
    """Maximum number of pixels of a short strip."""

    is_clamped = True

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.longest, self.short)

    def counts(
        self, function: FunctionBuilder, pixels: SSAValue, longest: SSAValue
    ) -> Sequence[SSAValue]:
        long, rest = function.divmod(pixels, longest)
        short, more = (
            function.divide(function.add(one, self.short - 1), self.short)
            for one in (rest, function.add(rest, longest))
        )
        # short strips in place of a long one, if they repeat fewer pixels
        added = function.multiply(function.subtract(more, short), self.short)
        is_less = function.compare("slt", added, longest)
        fewer = function.select(is_less, function.subtract(long, 1), long)
        has_long = function.compare("sge", fewer, function.integer(0))
        return (
            function.select(has_long, fewer, long),
            function.select(has_long, function.select(is_less, more, short), short),
        )


class RestStrips(Strips):
    """Long strips, then strips for the rest of a row of any length.

    The rest is cut greedily into strips of one pixel less than a long strip, and of powers of two.
    """

    @property
    def sizes(self) -> tuple[int, ...]:
        powers = {1 << bit for bit in range(self.longest.bit_length())}
        sizes = {self.longest, self.longest - 1, *powers} - {0}
        return tuple(sorted((size for size in sizes if size <= self.longest), reverse=True))

    def counts(
        self, function: FunctionBuilder, pixels: SSAValue, longest: SSAValue
    ) -> Sequence[SSAValue]:
        found: list[SSAValue] = []
        for size in self.sizes:
            count, pixels = function.divmod(pixels, function.integer(size))
            found.append(count)
        return found
