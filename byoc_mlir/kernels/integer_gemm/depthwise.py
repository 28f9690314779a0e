"""Depthwise int8 convolutions, as one function for all threads.

The values at two window positions are interleaved channel by channel, and multiplied as packed
pairs of `i16`. One instruction interleaves values within each 128 bits of a vector. So a vector of
sums holds every other group of four channels; `_order` returns the order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType, i8, i16, i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import (
    KernelCode,
    Pair,
    Slot,
    read_parameters,
    result_sizes,
)
from byoc_mlir.kernels.costs import IntegerCalibration, calibration
from byoc_mlir.kernels.integer_gemm.centring import (
    CentringParameters,
    define_centring,
    define_lines,
    padded,
)
from byoc_mlir.kernels.integer_gemm.epilogue import Finish, IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.parameters import BytesParameters
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit, IntegerVectors
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.ops import unary, vector_type
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.vectors import Vectors, shuffled, splat

T = TypeVar("T")

NAME = "integer_depthwise"
"""Name of the kernel in IR and reports."""

_STRIP = 4
"""Adjacent pixels of a result row that share each load of weights."""

_HALVES, _INTERLEAVED = 2, 8
"""Vectors of sums for one vector of `i16`, and `i16` elements in 128 bits."""


@dataclass(frozen=True)
class _DepthwiseParameters(Generic[T]):
    """Run-time parameters: sizes, and distances in elements of the centred source."""

    centring: CentringParameters[T]
    lines: T
    """Number of rows of all images of the source, with padding."""
    rows: T
    """Number of rows of all images of the result."""
    height: T
    width: T
    """Width of an image of the result; `height` is its height."""
    blocks: T
    channels: T
    image: T
    line: T
    """Distance between windows of adjacent result rows; `image` is the distance between images."""
    window_line: T
    """Distance between the window's rows."""
    weights: T
    """Words of the packed weights; scales and offsets follow them."""
    bytes: BytesParameters[T]


@dataclass(frozen=True)
class DepthwiseOfBytes:
    """Depthwise int8 convolution of images `[N, H, W, C]`."""

    name: ClassVar[str] = NAME

    unit: IntegerUnit
    shape: tuple[int, int, int, int]
    """Images, rows, pixels and channels of the source; the channels are whole blocks."""
    is_signed: bool
    zero_point: int
    """Zero point of the source, whose bytes are signed if `is_signed`."""
    window: Pair
    strides: Pair
    dilation: Pair
    begins: Pair
    ends: Pair
    epilogue: IntegerEpilogue

    @property
    def packing(self) -> Hashable:
        """Returns a key of the order of the packed weights, in addition to their shape."""
        return self.unit

    @property
    def block(self) -> int:
        """Returns the number of channels that are multiplied together."""
        return _HALVES * self.unit.lanes

    @property
    def products(self) -> int:
        """Returns the number of MACs."""
        height, width = self._result
        places = self.window[0] * self.window[1]
        return self.shape[0] * height * width * self.shape[3] * places

    def milliseconds(self, threads: int) -> float:
        """Estimates the run time in milliseconds."""
        return self.products / calibration(IntegerCalibration).depthwise / threads

    @property
    def weight_bytes(self) -> int:
        """Returns the bytes of the packed weights."""
        return self.shape[3] * self.variant.pairs * i32.size

    def workspace_bytes(self, threads: int) -> int:
        """Returns the bytes of the centred source."""
        lines, pixels = self._padded
        return self.shape[0] * lines * pixels * self.shape[3] * 2

    @property
    def _padded(self) -> Pair:
        return padded(self.shape, self.begins, self.ends)

    @property
    def _result(self) -> Pair:
        return result_sizes(self._padded, self.window, self.strides, self.dilation)

    @property
    def variant(self) -> _Variant:
        """Returns the properties that the code depends on."""
        strip = min(_STRIP, self._result[1])
        steps = (self.strides[1], self.dilation[1])
        return _Variant(self.unit, strip, self.window, steps, self.is_signed, self.epilogue)

    def pack(
        self,
        weights: NDArray[np.int8],
        scales: NDArray[np.float32],
        offsets: NDArray[np.float32],
    ) -> NDArray[np.int32]:
        """Packs weights `[C, 1, H, W]`, followed by scales and offsets.

        Each block's channels are in the order of its vectors of sums.
        """
        (height, width), words_, order = self.window, self.variant.pairs, _order(self.unit.lanes)
        padded = np.zeros((self.shape[3], 2 * words_), np.int16)
        columns = weights.reshape(-1, height, width).transpose(0, 2, 1)
        padded[:, : height * width] = columns.reshape(-1, height * width)
        pairs = padded.reshape(-1, self.block, words_, 2)[:, order]
        packed = np.ascontiguousarray(pairs.transpose(0, 2, 1, 3)).reshape(-1).view(np.int32)
        factors = (one.reshape(-1, self.block)[:, order].reshape(-1) for one in (scales, offsets))
        return np.concatenate((packed, *(one.view(np.int32) for one in factors)))

    def code(self, threads: int) -> KernelCode:
        """Returns the code; `Slot.WEIGHTS` holds the result of `pack`, and there is no bias."""
        return KernelCode(partial(_define, variant=self.variant), words(self._told()))

    def _told(self) -> _DepthwiseParameters[int]:
        images, _, _, channels = self.shape
        (lines, pixels), (rows, columns) = self._padded, self._result
        line = pixels * channels
        epilogue: BytesParameters[int] = self.epilogue.parameters()  # pyright: ignore
        return _DepthwiseParameters(
            centring=CentringParameters[int].of(
                self.zero_point, self.shape, self.begins, self.ends, channels
            ),
            lines=images * lines,
            rows=images * rows,
            height=rows,
            width=columns,
            blocks=channels // self.block,
            channels=channels,
            image=lines * line,
            line=self.strides[0] * line,
            window_line=self.dilation[0] * line,
            weights=channels * self.variant.pairs,
            bytes=epilogue,
        )


@dataclass(frozen=True)
class _Variant:
    """Properties that the generated code depends on."""

    unit: IntegerUnit
    strip: int
    """Pixels of a strip; rows of the result have at least as many."""
    window: Pair
    steps: Pair
    """Strides between pixels of the result, and between pixels of the window."""
    is_signed: bool
    epilogue: IntegerEpilogue

    @property
    def pairs(self) -> int:
        """Returns the number of pairs of window positions; zeros may complete the last pair."""
        return -(-self.window[0] * self.window[1] // 2)

    @property
    def name(self) -> str:
        """Returns the function's symbol."""
        size, sign = "x".join(map(str, self.window)), "i8" if self.is_signed else "u8"
        kind = (
            f"{self.strip}_{self.steps[0]}_{self.steps[1]}_{self.unit.lanes}_{self.epilogue.suffix}"
        )
        return f"byoc_depthwise_of_bytes_{size}_{sign}_{kind}"


def _order(lanes: int) -> list[int]:
    """Returns the channels of a block in the order in which vectors of sums hold them."""
    half = _INTERLEAVED // 2
    return [
        start + place
        for first in (0, half)
        for start in range(first, _HALVES * lanes, _INTERLEAVED)
        for place in range(half)
    ]


def _define(module: ModuleBuilder, *, variant: _Variant) -> str:
    """Defines `void (slots)`, which runs one convolution; returns its symbol."""
    if module.has(variant.name):
        return variant.name
    centring = define_centring(module, is_signed=variant.is_signed)
    lines = define_lines(module, f"{variant.name}_lines", centring)
    rows = _define_rows(module, f"{variant.name}_rows", variant)
    function = module.function(variant.name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    told = read_parameters(function, slots, _DepthwiseParameters[SSAValue])
    function.parallel_for(lines, slots, told.lines)
    function.parallel_for(rows, slots, told.rows)
    function.finish()
    return variant.name


def _define_rows(module: ModuleBuilder, name: str, variant: _Variant) -> str:
    """Defines `void (slots, begin, end)` for a range of result rows; returns its symbol."""
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    pointers = (
        function.pointer(slots, slot)
        for slot in (Slot.WORKSPACE, Slot.WEIGHTS, Slot.RESIDUAL, Slot.RESULT)
    )
    told = read_parameters(function, slots, _DepthwiseParameters[SSAValue])
    code = _RowCode(function, variant, told, *pointers)
    function.for_range(begin, end, code.write)
    function.finish()
    return name


@dataclass(frozen=True)
class _RowCode:
    """Writer of the code for a result row."""

    function: FunctionBuilder
    variant: _Variant
    told: _DepthwiseParameters[SSAValue]
    source: SSAValue
    weights: SSAValue
    residual: SSAValue
    result: SSAValue

    def write(self, row: SSAValue) -> None:
        """Generates one row: block by block of channels, strip by strip."""
        function, told = self.function, self.told
        strip, (step, _) = self.variant.strip, self.variant.steps
        image, y = function.divmod(row, told.height)
        first = function.add(function.multiply(image, told.image), function.multiply(y, told.line))
        strips = function.divide(function.add(told.width, strip - 1), strip)
        final = function.subtract(told.width, strip)
        start = function.multiply(row, told.width)

        def block(number: SSAValue) -> None:
            def pixels(index: SSAValue) -> None:
                x = function.least(function.multiply(index, strip), final)
                begin = function.multiply(function.multiply(x, told.channels), step)
                place = function.add(first, begin)
                self._strip(number, place, function.add(start, x))

            function.loop(strips, pixels)

        function.loop(told.blocks, block)

    def _strip(self, block: SSAValue, place: SSAValue, pixel: SSAValue) -> None:
        function, told, unit = self.function, self.told, self.variant.unit
        channel = function.multiply(block, _HALVES * unit.lanes)
        sums = self._sums(channel, function.add(place, channel))
        scales = function.gep(self.weights, told.weights)
        offsets = function.gep(scales, told.channels)
        vectors = Vectors(function, unit.lanes)
        factors = [
            [
                vectors.load(function.gep(base, function.add(channel, at)))
                for base in (scales, offsets)
            ]
            for at in range(0, _HALVES * unit.lanes, unit.lanes)
        ]
        for number, totals in enumerate(sums):
            at = function.multiply(function.add(pixel, number), told.channels)
            self._store(totals, factors, function.add(at, channel))

    def _sums(self, channel: SSAValue, place: SSAValue) -> list[list[SSAValue]]:
        """Computes the sums of a strip: for each pixel its vectors."""
        function, told, unit = self.function, self.told, self.variant.unit
        vectors = IntegerVectors(function, unit)
        zero = function.constant(splat(0, vectors.type), vectors.type)
        sums = [[zero] * _HALVES for _ in range(self.variant.strip)]
        (height, width), (step, window_step) = self.variant.window, self.variant.steps
        lines = [
            function.gep(
                self.source, function.add(place, function.multiply(told.window_line, y)), i16
            )
            for y in range(height)
        ]
        places = [(line, x * window_step) for x in range(width) for line in lines]
        panel = function.gep(self.weights, function.multiply(channel, self.variant.pairs), i32)
        for pair in range(self.variant.pairs):
            at = pair * _HALVES * unit.lanes
            weights = [vectors.load(function.gep(panel, at + n * unit.lanes, i32)) for n in (0, 1)]
            for number, totals in enumerate(sums):
                some = [(line, x + number * step) for line, x in places[2 * pair : 2 * pair + 2]]
                # the second weight of an unpaired position is 0
                numbers = self._interleaved(some[0], some[-1])
                for half, (left, right) in enumerate(zip(numbers, weights, strict=True)):
                    totals[half] = vectors.multiply_add(left, right, totals[half])
        return sums

    def _interleaved(self, *places: tuple[SSAValue, int]) -> list[SSAValue]:
        """Interleaves the values at two window positions to packed pairs.

        Each position is given as an address and a distance in pixels.
        """
        function, lanes = self.function, self.variant.unit.lanes
        type_, words_ = vector_type(i16, _HALVES * lanes), vector_type(i32, lanes)
        one, other = (
            function.load(
                function.gep(line, function.multiply(self.told.channels, x), i16), type_, 2
            )
            for line, x in places
        )
        order = _order(lanes)
        halves = (order[:lanes], order[lanes:])
        return [
            function.insert(unary(llvm.BitcastOp, shuffled(function, one, other, lanes_), words_))
            for lanes_ in ([at for n in half for at in (n, n + 2 * lanes)] for half in halves)
        ]

    def _store(
        self, totals: Sequence[SSAValue], factors: Sequence[Sequence[SSAValue]], place: SSAValue
    ) -> None:
        """Stores the result bytes of a pixel's block."""
        function, unit, epilogue = self.function, self.variant.unit, self.variant.epilogue
        finish = Finish.told(function, unit.lanes, epilogue, self.told.bytes, narrows=unit.narrows)
        order = _order(unit.lanes)
        added: list[SSAValue | None] = [None] * _HALVES
        if epilogue.residual is not None:
            type_ = VectorType(i8, [_HALVES * unit.lanes])
            given = function.load(function.gep(self.residual, place, i8), type_, 1)
            added = [
                shuffled(function, given, given, order[first : first + unit.lanes])
                for first in (0, unit.lanes)
            ]
        (bytes_,) = finish.of(
            [
                (total, scale, offset, residual)
                for total, (scale, offset), residual in zip(totals, factors, added, strict=True)
            ]
        )
        ordered = shuffled(function, bytes_, bytes_, [order.index(at) for at in range(len(order))])
        function.store(ordered, function.gep(self.result, place, i8), 1)
