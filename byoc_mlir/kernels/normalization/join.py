"""Tensors joined along their channels, times a factor plus a summand for each channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from byoc_mlir.kernels.convolution import Code
from byoc_mlir.kernels.costs import ConvolutionRates, rates
from byoc_mlir.kernels.normalization.code import (
    FACTORS,
    PARTS,
    Parameters,
    Variant,
    define_normalized_join,
)
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.vectors import FEWEST_LANES, Float


@dataclass(frozen=True)
class Part:
    """A tensor that is stored as `[channels / block, pixels, block]`: one block where channels are
    last.
    """

    channels: int
    block: int

    @property
    def blocks(self) -> int:
        """The pieces that the channels of a pixel lie in."""
        return self.channels // self.block


@dataclass(frozen=True)
class NormalizedJoin:
    """Such a join; with `relu`, negative results become zero.

    The result has the channels last where `block` is all of them.
    """

    parts: tuple[Part, ...]
    pixels: int
    block: int
    element: Float
    relu: bool
    lanes: int

    @property
    def channels(self) -> int:
        """Those of all parts."""
        return sum(part.channels for part in self.parts)

    @property
    def variant(self) -> Variant:
        """What its code depends on."""
        return Variant(self.lanes, self.element, self.relu)

    @property
    def words(self) -> tuple[int, ...]:
        """What its code is told."""
        is_last = self.block == self.channels
        parameters = Parameters(self.pixels, self.channels, self.block, len(self.parts))
        rows: list[int] = [int(word) for word in words(parameters)]
        for part in self.parts:
            target = part.block if is_last else self.pixels * self.block
            step = part.block * self.pixels
            rows += [part.blocks, part.block // self.lanes, part.block, step, target]
        return tuple(rows)

    @property
    def slots(self) -> tuple[int, ...]:
        """Where the code finds the factors and the parts."""
        return FACTORS, *range(PARTS, PARTS + len(self.parts))

    def code(self) -> Code:
        """What computes it on all threads."""
        return Code(partial(define_normalized_join, variant=self.variant), self.words)

    def milliseconds(self, threads: int) -> float:
        """About what it takes: its bytes are read and written."""
        moved = 2 * self.pixels * self.channels * self.element.size
        return moved / rates(ConvolutionRates).transformed_bytes / threads


def fitting_lanes(blocks: Sequence[int], most: int) -> int | None:
    """The lanes of the longest vectors, of so many at most, that blocks of channels are made of; if
    there are any.
    """
    lanes = math.gcd(most, *blocks)
    return lanes if lanes >= FEWEST_LANES else None
