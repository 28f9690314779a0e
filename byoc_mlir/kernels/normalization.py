"""Tensors joined along their channels, times a factor plus a summand for each channel."""

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
from byoc_mlir.kernels.convolution import KernelCode, Slot
from byoc_mlir.kernels.costs import ConvolutionCalibration, calibration
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read, words
from byoc_mlir.kernels.vectors import FEWEST_LANES, Float, Vectors

PREFIX = "byoc_normalized"

FACTORS = len(Slot)
"""The slot, behind those of all kernels, of the factors of all channels and the summands behind
them."""

PARTS = FACTORS + 1
"""The slot of the first part; the others follow."""

_CHUNK_PIXELS = 48
"""Pixels whose parts are all read before the next ones are: of 1,024 channels of `f32`, what is
written fits in a second cache of 256 KB."""

_COPIES = 4
"""Pixels that are written one after the other, without a jump."""

T = TypeVar("T")


@dataclass(frozen=True)
class JoinParameters(Generic[T]):
    """Sizes and distances, in elements. Behind them stand the rows of the parts."""

    pixels: T
    """Those of all images."""
    channels: T
    """Those of all parts."""
    target_pixel: T
    """From pixel to pixel of the result."""
    parts: T


class Row(IntEnum):
    """What is said of a part."""

    BLOCKS = 0
    """How many pieces the channels of a pixel lie in."""
    VECTORS = 1
    """The vectors of such a piece."""
    PIXEL = 2
    """From pixel to pixel."""
    BLOCK = 3
    """From one piece of a pixel to the next one."""
    TARGET_BLOCK = 4
    """The same, in the result."""


@dataclass(frozen=True)
class JoinVariant:
    """What the code depends on."""

    lanes: int
    element: Float
    relu: bool

    @property
    def suffix(self) -> str:
        """What tells the functions of variants apart."""
        return f"{self.lanes}x{self.element}" + "_relu" * self.relu


def define_normalized_join(module: ModuleBuilder, variant: JoinVariant) -> str:
    """`void (slots)`: joins and normalises all pixels, on all threads."""
    name = f"{PREFIX}_join_{variant.suffix}"
    if module.has(name):
        return name
    chunks = _define_chunks(module, variant)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    pixels = _parameters(function, function.pointer(slots, Slot.PARAMETERS)).pixels
    count = function.divide(function.add(pixels, _CHUNK_PIXELS - 1), _CHUNK_PIXELS)
    function.parallel_for(chunks, slots, count)
    function.finish()
    return name


def _define_chunks(module: ModuleBuilder, variant: JoinVariant) -> str:
    """`void (slots, begin, end)`: some chunks of pixels."""
    pixels_of = _define_pixels(module, variant)
    name = f"{PREFIX}_chunks_{variant.suffix}"
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    words = function.pointer(slots, Slot.PARAMETERS)
    parameters = _parameters(function, words)
    result = function.pointer(slots, Slot.RESULT)

    def chunk(index: SSAValue) -> None:
        first = function.multiply(function.add(begin, index), _CHUNK_PIXELS)
        last = function.least(function.add(first, _CHUNK_PIXELS), parameters.pixels)
        place = function.multiply(first, parameters.target_pixel)
        target = function.gep(result, place, variant.element)
        function.do(pixels_of, slots, words, target, first, last)

    function.loop(function.subtract(end, begin), chunk)
    function.finish()
    return name


def _define_pixels(module: ModuleBuilder, variant: JoinVariant) -> str:
    """`void (slots, parameters, target, begin, end)`: pixels from one on, up to another, written
    to where the target begins.
    """
    name = f"{PREFIX}_pixels_{variant.suffix}"
    function = module.function(name, (POINTER,) * 3 + (i64, i64), result=VOID, internal=True)
    _Pixels(function, variant).write()
    function.finish()
    return name


def _parameters(function: FunctionBuilder, words: SSAValue) -> JoinParameters[SSAValue]:
    return read(function, words, JoinParameters[SSAValue])


class _Pixels:
    """Writes the loops over the parts, their vectors, and the pixels of each vector."""

    def __init__(self, function: FunctionBuilder, variant: JoinVariant):
        self._function, self._variant = function, variant
        self._slots, words, self._target, self._begin, end = function.parameters
        self._parameters = _parameters(function, words)
        self._rows = function.slot(words, len(fields(JoinParameters)))
        self._count = function.subtract(end, self._begin)
        self._factors = function.pointer(self._slots, FACTORS)
        self._vectors = Vectors(function, variant.lanes)

    def write(self) -> None:
        """Writes the function."""
        function = self._function
        zero = function.integer(0)
        function.fold(self._parameters.parts, (zero, zero), self._part)

    def _part(self, part: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """A part whose first channel, and where it is written, are known; those of the next one."""
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
        """The same channels of all pixels."""
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

    parts: tuple[JoinedTensor, ...]
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
    def variant(self) -> JoinVariant:
        """What its code depends on."""
        return JoinVariant(self.lanes, self.element, self.relu)

    @property
    def words(self) -> tuple[int, ...]:
        """What its code is told."""
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
        """Where the code finds the factors and the parts."""
        return FACTORS, *range(PARTS, PARTS + len(self.parts))

    def code(self) -> KernelCode:
        """What computes it on all threads."""
        return KernelCode(partial(define_normalized_join, variant=self.variant), self.words)

    def milliseconds(self, threads: int) -> float:
        """About what it takes: its bytes are read and written."""
        moved = 2 * self.pixels * self.channels * self.element.size
        return moved / calibration(ConvolutionCalibration).transformed_bytes / threads


def fitting_lanes(blocks: Sequence[int], most: int) -> int | None:
    """The lanes of the longest vectors, of so many at most, that blocks of channels are made of; if
    there are any.
    """
    lanes = math.gcd(most, *blocks)
    return lanes if lanes >= FEWEST_LANES else None
