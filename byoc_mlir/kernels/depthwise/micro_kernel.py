"""Micro-kernels of a depthwise convolution: a few adjacent pixels, all channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import Windows
from byoc_mlir.kernels.depthwise.channels import CHANNELS, Channels
from byoc_mlir.kernels.epilogue import float_bits
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read

T = TypeVar("T")


@dataclass(frozen=True)
class DepthwiseParameters(Generic[T]):
    """Run-time parameters: sizes, and distances in memory in elements."""

    lines: T
    """Number of rows of all images of the result."""
    rows: T
    """Number of rows of one image."""
    row_pixels: T
    """Pixels of a row of the result."""
    blocks: T
    """Number of blocks of a pixel's channels."""
    window: T
    """Weights of a window, for one block of channels."""
    window_height: T
    window_line: T
    """Distance between window rows in the source; `window_height` is the number of rows."""
    weights: T
    """Number of all weights; zeros follow them."""
    windows: Windows[T]
    source_image: T
    source_line: T
    source_pixel: T
    result_image: T
    result_line: T
    result_pixel: T
    """Distance between pixels of the result; the fields before are distances between images, rows
    and pixels of source and result."""


PREFIX = "byoc_depthwise"

TYPES = (POINTER, POINTER, i64, i64, *(POINTER,) * 5)
"""Arguments of a micro-kernel, in this order: parameters; the first pixel's window, its column in
the image, and the number of its rows in the image; weights, bias, zeros, result; residual or null.
"""

_LINE_WORDS = 16
"""Words of 32 bits in a cache line."""


@dataclass(frozen=True)
class DepthwiseVariant:
    """Properties that the generated code depends on."""

    lanes: int
    pixels: int
    """Number of pixels that a micro-kernel computes; some kernels compute one less."""
    columns: int
    """Width of the window."""
    stride: int
    dilation: int
    residual: bool
    lower: float
    upper: float
    """Upper limit of a result. Both limits are constants in the code, so LLVM knows that they are
    no NaN."""
    element: Attribute = f32
    """Element type of source and result."""
    prefetches: bool = False
    """True if the source rows that the next result row needs are prefetched."""

    @property
    def block(self) -> int:
        """Returns the number of channels that are processed at once."""
        return CHANNELS[self.element].parts * self.lanes

    @property
    def suffix(self) -> str:
        """Returns a symbol suffix that distinguishes the variants' functions."""
        window = f"{self.columns}s{self.stride}d{self.dilation}"
        kind = "" if self.element == f32 else f"_{self.element}"
        flags = "_sum" * self.residual + "_ahead" * self.prefetches
        limits = f"_{float_bits(self.lower):x}_{float_bits(self.upper):x}"
        return f"{self.pixels}x{self.lanes}_{window}{kind}" + flags + limits

    @property
    def places(self) -> tuple[int, ...]:
        """Returns the columns of source pixels that a strip reads, relative to the window of the
        first result pixel.
        """
        columns, pixels = range(self.columns), range(self.pixels)
        return tuple(sorted({self.place(pixel, column) for pixel in pixels for column in columns}))

    def place(self, pixel: int, column: int) -> int:
        """Returns the column of the source pixel that a result pixel reads at one window column."""
        return pixel * self.stride + column * self.dilation


def define_kernel(module: ModuleBuilder, variant: DepthwiseVariant, *, padded: bool) -> str:
    """Defines a micro-kernel; returns its symbol.

    Its type is `void (parameters, source, x, lines, weights, bias, zeros, result, residual)`.

    Args:
        padded: True if windows may reach beyond the row, where zeros are read.
    """
    name = f"{PREFIX}_kernel_{variant.suffix}" + "_padded" * padded
    if module.has(name):
        return name
    function = _begin(module, name, variant.element)
    address, source, x, lines, *pointers = function.parameters
    parameters = read(function, address, DepthwiseParameters[SSAValue])
    *_, zeros, _, _ = pointers
    strip = _Strip(function, variant, parameters, source, lines, *pointers)
    strip.write(_sources(function, variant, parameters, source, x if padded else None, zeros))
    function.finish()
    return name


def _begin(module: ModuleBuilder, name: str, element: Attribute) -> FunctionBuilder:
    """Begins the function; code for `f32` is vectorised here, code for `bf16` uses LLVM's
    optimisations.
    """
    if element == f32:
        return module.vectorised(name, TYPES)
    return module.function(name, TYPES, result=VOID, internal=True)


@dataclass(frozen=True)
class _Source:
    """Source pixel in the first window row, and the distance to its next row."""

    address: SSAValue
    step: SSAValue


def _sources(
    function: FunctionBuilder,
    variant: DepthwiseVariant,
    parameters: DepthwiseParameters[SSAValue],
    source: SSAValue,
    x: SSAValue | None,
    zeros: SSAValue,
) -> Mapping[int, _Source]:
    """Returns the source of each column of pixels; if `x` is given, zeros replace columns outside
    of the row.
    """
    found: dict[int, _Source] = {}
    nothing = function.integer(0)
    for place in variant.places:
        address = function.gep(
            source, function.multiply(parameters.source_pixel, place), variant.element
        )
        step = parameters.window_line
        if x is not None:
            is_inside = function.compare("ult", function.add(x, place), parameters.windows.width)
            address = function.select(is_inside, address, zeros)
            step = function.select(is_inside, step, nothing)
        found[place] = _Source(address, step)
    return found


@dataclass(frozen=True)
class _Strip:
    """Writer of the micro-kernel's code for one strip."""

    function: FunctionBuilder
    variant: DepthwiseVariant
    parameters: DepthwiseParameters[SSAValue]
    source: SSAValue
    lines: SSAValue
    weights: SSAValue
    bias: SSAValue
    zeros: SSAValue
    result: SSAValue
    residual: SSAValue

    def write(self, sources: Mapping[int, _Source]) -> None:
        """Generates a loop over the blocks of channels."""
        function, parameters, variant = self.function, self.parameters, self.variant
        channels = CHANNELS[variant.element](function, variant.lanes)
        limit = channels.vectors.limited(variant.lower, variant.upper)

        def block(index: SSAValue) -> None:
            channel = self._channel(index)
            if variant.prefetches:
                self._prefetch(index)
            weights = function.gep(self.weights, function.multiply(index, parameters.window))
            sums = self._sums(channels, sources, channel, weights)
            self._write_results(channels, channel, sums, limit)

        function.loop(parameters.blocks, block)

    def _prefetch(self, index: SSAValue) -> None:
        """Prefetches the source rows below the windows, which the next result row needs.

        Each block prefetches a share of each row. A block reads few elements of many pixels, which
        the hardware prefetcher does not recognise as streams.
        """
        function, variant, step = self.function, self.variant, self.parameters.window_line
        share = variant.pixels * variant.stride * variant.block
        elements = _LINE_WORDS * CHANNELS[variant.element].parts
        for line in range(variant.stride):
            begin = function.multiply(step, function.add(self.lines, line))
            begin = function.add(begin, function.multiply(index, share))
            for part in range(0, share, elements):
                at = function.gep(self.source, function.add(begin, part), variant.element)
                function.prefetch(at, cache=2)

    def _channel(self, index: SSAValue) -> SSAValue:
        """Returns the first channel of a block; the last block ends at the last channel."""
        function, size = self.function, self.variant.block
        channel = function.multiply(index, size)
        if self.variant.element == f32:
            return channel
        return function.least(channel, function.subtract(self.parameters.source_pixel, size))

    def _sums(
        self,
        channels: Channels,
        sources: Mapping[int, _Source],
        channel: SSAValue,
        weights: SSAValue,
    ) -> list[Sums]:
        """Computes the sums over the window rows: for each part of a block, one for each pixel."""
        function, variant, parts = self.function, self.variant, range(channels.parts)
        starts = channels.load_floats(function.gep(self.bias, channel))
        first = {
            place: function.gep(one.address, channel, variant.element)
            for place, one in sources.items()
        }
        line_size = variant.columns * variant.block

        def line(number: SSAValue, sums: Sums, part: int) -> Sums:
            row = function.gep(weights, function.multiply(number, line_size))
            held = {
                place: channels.load(
                    function.gep(
                        first[place], function.multiply(one.step, number), variant.element
                    ),
                    part,
                )
                for place, one in sources.items()
            }
            for column in range(variant.columns):
                at = column * variant.block + part * variant.lanes
                weight = channels.vectors.load(function.gep(row, at))
                values = [held[variant.place(pixel, column)] for pixel in range(variant.pixels)]
                sums = add_products(channels.vectors.multiply_add, values, [weight], sums)
            return sums

        return [
            function.fold(self.lines, [starts[part]] * variant.pixels, partial(line, part=part))
            for part in parts
        ]

    def _write_results(
        self,
        channels: Channels,
        channel: SSAValue,
        sums: Sequence[Sums],
        limit: Callable[[SSAValue], SSAValue],
    ) -> None:
        function, variant = self.function, self.variant
        step = self.parameters.result_pixel
        for pixel, totals in enumerate(zip(*sums, strict=True)):
            at = function.add(function.multiply(step, pixel), channel)
            if variant.residual:
                address = function.gep(self.residual, at, variant.element)
                totals = [
                    channels.vectors.add(total, channels.load(address, part))
                    for part, total in enumerate(totals)
                ]
            channels.store(
                [limit(total) for total in totals], function.gep(self.result, at, variant.element)
            )
