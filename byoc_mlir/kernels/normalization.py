"""Concatenation along channels, fused with a factor and a summand for each channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from functools import partial
from typing import Generic, TypeVar

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import KernelCode, Slot, read_parameters
from byoc_mlir.kernels.costs import ConvolutionCalibration, calibration
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read, words
from byoc_mlir.kernels.vectors import FEWEST_LANES, Float, Vectors

PREFIX = "byoc_normalized"

FACTORS = len(Slot)
"""Slot of the factors of all channels, followed by their summands; it follows the slots of all
kernels."""

PARTS = FACTORS + 1
"""Slot of the first part; the slots of the other parts follow."""

_CHUNK_PIXELS = 48
"""Pixels of a chunk, whose parts are all read before the next chunk. With 1,024 channels of `f32`,
the results of a chunk fit in an L2 cache of 256 KB."""

_COPIES = 4
"""Unroll factor of the loop over pixels."""

T = TypeVar("T")


@dataclass(frozen=True)
class JoinParameters(Generic[T]):
    """Run-time parameters: sizes and distances of a concatenation, in elements. A `Row` for each
    part follows in memory.
    """

    pixels: T
    """Number of pixels of all images."""
    channels: T
    """Number of channels of all parts."""
    target_pixel: T
    """Distance between pixels of the result."""
    parts: T


class Row(IntEnum):
    """Parameters of one part of the concatenation."""

    BLOCKS = 0
    """Number of blocks that hold a pixel's channels."""
    VECTORS = 1
    """Vectors of a block."""
    PIXEL = 2
    """Distance between pixels of the part."""
    BLOCK = 3
    """Distance between a pixel's blocks in the part."""
    TARGET_BLOCK = 4
    """Distance between a pixel's blocks in the result."""


@dataclass(frozen=True)
class JoinVariant:
    """Properties that the generated code depends on."""

    lanes: int
    element: Float
    relu: bool

    @property
    def suffix(self) -> str:
        """Returns a symbol suffix that distinguishes the variants' functions."""
        return f"{self.lanes}x{self.element}" + "_relu" * self.relu


def define_normalized_join(module: ModuleBuilder, variant: JoinVariant) -> str:
    """Defines `void (slots)`, which joins and normalises all pixels; returns its symbol."""
    name = f"{PREFIX}_join_{variant.suffix}"
    if module.has(name):
        return name
    chunks = _define_chunks(module, variant)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    pixels = read_parameters(function, slots, JoinParameters[SSAValue]).pixels
    count = function.divide(function.add(pixels, _CHUNK_PIXELS - 1), _CHUNK_PIXELS)
    function.parallel_for(chunks, slots, count)
    function.finish()
    return name


def _define_chunks(module: ModuleBuilder, variant: JoinVariant) -> str:
    """Defines `void (slots, begin, end)`, which processes a range of chunks; returns its symbol."""
    pixels_of = _define_pixels(module, variant)
    name = f"{PREFIX}_chunks_{variant.suffix}"
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    words = function.pointer(slots, Slot.PARAMETERS)
    parameters = read(function, words, JoinParameters[SSAValue])
    result = function.pointer(slots, Slot.RESULT)

    def chunk(number: SSAValue) -> None:
        first = function.multiply(number, _CHUNK_PIXELS)
        last = function.least(function.add(first, _CHUNK_PIXELS), parameters.pixels)
        place = function.multiply(first, parameters.target_pixel)
        target = function.gep(result, place, variant.element)
        function.do(pixels_of, slots, words, target, first, last)

    function.for_range(begin, end, chunk)
    function.finish()
    return name


def _define_pixels(module: ModuleBuilder, variant: JoinVariant) -> str:
    """Defines `void (slots, parameters, target, begin, end)` for a range of pixels.

    `target` is the address of the range's first result. Returns the function's symbol.
    """
    name = f"{PREFIX}_pixels_{variant.suffix}"
    function = module.function(name, (POINTER,) * 3 + (i64, i64), result=VOID, internal=True)
    _Pixels(function, variant).write()
    function.finish()
    return name


class _Pixels:
    """Writer of the loops over the concatenated parts, the vectors of a part, and the pixels of a
    vector.
    """

    def __init__(self, function: FunctionBuilder, variant: JoinVariant):
        self._function, self._variant = function, variant
        self._slots, words, self._target, self._begin, end = function.parameters
        self._parameters = read(function, words, JoinParameters[SSAValue])
        self._rows = function.slot(words, len(fields(JoinParameters)))
        self._count = function.subtract(end, self._begin)
        self._factors = function.pointer(self._slots, FACTORS)
        self._vectors = Vectors(function, variant.lanes)

    def write(self) -> None:
        """Generates the function."""
        function = self._function
        zero = function.integer(0)
        function.fold(self._parameters.parts, (zero, zero), self._part)

    def _part(self, part: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Generates the loops over one part of the concatenation.

        The loop over parts carries the part's first channel and its offset in the result.
        """
        function, lanes = self._function, self._variant.lanes
        channel, place = state
        rows = function.slot(self._rows, function.multiply(part, len(Row)))
        row = {one: function.word(rows, one) for one in Row}
        source = function.pointer(self._slots, function.add(part, PARTS))
        source = self._element(source, function.multiply(self._begin, row[Row.PIXEL]))
        target = self._element(self._target, place)

        def block(number: SSAValue) -> None:
            before = function.multiply(number, row[Row.VECTORS])
            read = self._element(source, function.multiply(number, row[Row.BLOCK]))
            written = self._element(target, function.multiply(number, row[Row.TARGET_BLOCK]))

            def vector(index: SSAValue) -> None:
                done = function.multiply(function.add(before, index), lanes)
                step = function.multiply(index, lanes)
                first = function.add(channel, done)
                places = self._element(read, step), self._element(written, step)
                self._vector(first, *places, row[Row.PIXEL])

            function.loop(row[Row.VECTORS], vector)

        function.loop(row[Row.BLOCKS], block)
        vectors = function.multiply(row[Row.BLOCKS], row[Row.VECTORS])
        length = function.multiply(row[Row.BLOCKS], row[Row.TARGET_BLOCK])
        channel = function.add(channel, function.multiply(vectors, lanes))
        return channel, function.add(place, length)

    def _vector(
        self, channel: SSAValue, source: SSAValue, target: SSAValue, pixel: SSAValue
    ) -> None:
        """Generates the loop over the pixels of one vector of channels."""
        function, vectors = self._function, self._vectors
        factor = vectors.load(function.gep(self._factors, channel))
        place = function.add(channel, self._parameters.channels)
        summand = vectors.load(function.gep(self._factors, place))
        zeros = vectors.splat(0.0)

        def one(index: SSAValue) -> None:
            read = self._element(source, function.multiply(index, pixel))
            step = function.multiply(index, self._parameters.target_pixel)
            value = vectors.multiply_add(vectors.load(read, self._variant.element), factor, summand)
            value = vectors.maximum(value, zeros) if self._variant.relu else value
            vectors.store(value, self._element(target, step), self._variant.element)

        function.loop(self._count, one, copies=_COPIES)

    def _element(self, base: SSAValue, index: SSAValue) -> SSAValue:
        return self._function.gep(base, index, self._variant.element)


@dataclass(frozen=True)
class JoinedTensor:
    """Tensor that is stored in memory as `[channels / block, pixels, block]`; NHWC has one
    block.
    """

    channels: int
    block: int

    @property
    def blocks(self) -> int:
        """Returns the number of blocks into which a pixel's channels are divided."""
        return self.channels // self.block


@dataclass(frozen=True)
class NormalizedJoin:
    """Concatenation along channels, fused with a factor and a summand for each channel.

    With `relu`, negative results become zero. The result is NHWC if `block` is all channels.
    """

    parts: tuple[JoinedTensor, ...]
    pixels: int
    block: int
    element: Float
    relu: bool
    lanes: int

    @property
    def channels(self) -> int:
        """Returns the total number of channels of all parts."""
        return sum(part.channels for part in self.parts)

    @property
    def variant(self) -> JoinVariant:
        """Returns the properties that the code depends on."""
        return JoinVariant(self.lanes, self.element, self.relu)

    @property
    def words(self) -> tuple[int, ...]:
        """Returns the words of the code's parameters."""
        is_last = self.block == self.channels
        parameters = JoinParameters(self.pixels, self.channels, self.block, len(self.parts))
        rows: list[int] = [int(word) for word in words(parameters)]
        for part in self.parts:
            target = part.block if is_last else self.pixels * self.block
            step = part.block * self.pixels
            rows += [part.blocks, part.block // self.lanes, part.block, step, target]
        return tuple(rows)

    @property
    def slots(self) -> tuple[int, ...]:
        """Returns the slots of the factors and of the parts."""
        return FACTORS, *range(PARTS, PARTS + len(self.parts))

    def code(self) -> KernelCode:
        """Returns the code for all threads."""
        return KernelCode(partial(define_normalized_join, variant=self.variant), self.words)

    def milliseconds(self, threads: int) -> float:
        """Estimates the run time in milliseconds, from the bytes that are read and written."""
        moved = 2 * self.pixels * self.channels * self.element.size
        return moved / calibration(ConvolutionCalibration).transformed_bytes / threads


def fitting_lanes(blocks: Sequence[int], most: int) -> int | None:
    """Returns the largest number of lanes, at most `most`, that divides all blocks, or `None`."""
    lanes = math.gcd(most, *blocks)
    return lanes if lanes >= FEWEST_LANES else None
