"""Micro-kernels of an implicit GEMM: a few pixels by a panel of the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, FunctionBuilder, Index
from byoc_mlir.kernels.convolution import Windows
from byoc_mlir.kernels.epilogue import Limits
from byoc_mlir.kernels.gemm import Sums, add_products, clamped_rows
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import Vectors, VectorUnit

T = TypeVar("T")


@dataclass(frozen=True)
class ImplicitGemmParameters(Generic[T]):
    """Run-time parameters: sizes, distances in memory in elements, and the bits of the limits."""

    pieces: T
    """Number of pieces of all rows of all images of the result."""
    image_pieces: T
    line_pieces: T
    """Pieces of one row; `image_pieces` counts one image. A short row is one piece."""
    piece_pixels: T
    """Pixels between consecutive pieces of a row."""
    row_pixels: T
    """Pixels of a row; its last piece may be shorter than the others."""
    blocks: T
    """Number of blocks of pieces."""
    panels: T
    outputs: T
    """Number of vectors of the result's channels."""
    panel: T
    part: T
    """Number of weights of one part of the window; `panel` is the number for a whole panel. All
    strips of a block use a part before the next one."""
    parts: T
    line_parts: T
    """Parts of each row of the window; `parts` counts the whole window."""
    part_height: T
    part_width: T
    inputs: T
    """Vectors of the source's channels; with height and width of a part, the extents of the sum."""
    window_line: T
    window_pixel: T
    input: T
    """Distance between channel vectors; `window_line` and `window_pixel` are steps of the window.
    """
    windows: Windows[T]
    source_image: T
    source_line: T
    source_pixel: T
    """Distance between windows of adjacent results; `source_line` and `source_image` are those
    between rows and between images."""
    source_start: T
    """Distance from the source's first pixel to the first window."""
    result_image: T
    result_line: T
    result_pixel: T
    result_vector: T
    """Distance between channel vectors of the result; the distances before are those between
    images, rows and pixels."""
    lower: T
    upper: T
    """Upper limit of a result; `lower` is its lower limit."""


PREFIX = "byoc_implicit_gemm"

TYPES = (POINTER, POINTER, i64, i64, *(POINTER,) * 5, i1, POINTER, i64)
"""Arguments of a micro-kernel, in this order: parameters; the first pixel's window, and its row and
column in the image; panel, bias, zeros, the address to prefetch, and result; a flag to store more
than the panel's first vector; residual or null; the number of pixels that are left in the row."""


@dataclass(frozen=True)
class ImplicitGemmVariant:
    """Properties that the generated code depends on."""

    unit: VectorUnit
    pixels: int
    """Pixels of a micro-kernel; some kernels have fewer."""
    together: int
    """Channels of the source that are adjacent in memory."""
    padded: bool
    residual: bool
    limits: Limits
    prefetches: bool = False
    """True if the source pixels after the kernel's pixels are prefetched."""
    clamped: bool = False
    """True if fewer pixels may be left in the row; then the kernel repeats the last one."""

    @property
    def suffix(self) -> str:
        """Returns a symbol suffix that distinguishes the variants' functions."""
        flags = "_padded" * self.padded + "_sum" * self.residual
        flags += "_ahead" * self.prefetches + "_clamped" * self.clamped
        tile = f"{self.pixels}x{self.unit.panel_vectors}x{self.unit.lanes}"
        inputs = f"_by{self.together}" * (self.together != self.unit.lanes)
        return f"{tile}{inputs}{flags}_{self.limits}"


def define_kernel(module: ModuleBuilder, variant: ImplicitGemmVariant) -> str:
    """Defines a micro-kernel; returns its symbol.

    Its type is `void (parameters, source, y, x, panel, bias, zeros, next, result, is_whole,
    residual, left)`.
    """
    name = f"{PREFIX}_kernel_{variant.suffix}"
    if module.has(name):
        return name
    function = module.vectorised(name, TYPES)
    address, source, y, x, panel, bias, zeros, ahead, result, *others = function.parameters
    is_whole, other, left = others
    parameters = read(function, address, ImplicitGemmParameters[SSAValue])
    vectors = Vectors(function, variant.unit.lanes)
    count = variant.pixels
    pixels = clamped_rows(function, count, left) if variant.clamped else range(count)
    window = _Window(vectors, variant, parameters, source, y, x, zeros, ahead, pixels)
    sums = window.sums(panel, bias)
    limit = vectors.limiter(variant.limits, parameters.lower, parameters.upper)
    steps = [function.multiply(parameters.result_pixel, pixel) for pixel in pixels]

    vectors_of_row = variant.unit.panel_vectors

    def write(columns: range) -> None:
        for column in columns:
            vector = function.multiply(parameters.result_vector, column)
            places = [function.add(step, vector) for step in steps]
            totals = sums[column::vectors_of_row]
            if variant.residual:  # all of it is loaded first: the result may share its memory
                held = [vectors.load(function.gep(other, place)) for place in places]
                totals = list(map(vectors.add, totals, held))
            for place, total in zip(places, totals, strict=True):
                vectors.store(limit(total), function.gep(result, place))

    write(range(1))
    function.when(is_whole, partial(write, range(1, vectors_of_row)))
    function.finish()
    return name


@dataclass(frozen=True)
class _Window:
    """Windows of a few adjacent result pixels."""

    vectors: Vectors
    variant: ImplicitGemmVariant
    parameters: ImplicitGemmParameters[SSAValue]
    source: SSAValue
    y: SSAValue
    x: SSAValue
    """Column of the first pixel's window in the image; `y` is its row, `source` its address."""
    zeros: SSAValue
    ahead: SSAValue
    """Address of weights that are needed soon."""
    pixels: Sequence[Index]

    @property
    def _function(self) -> FunctionBuilder:
        return self.vectors.function

    def sums(self, panel: SSAValue, bias: SSAValue) -> Sums:
        """Computes the accumulators of each pixel, as vectors over the panel."""
        function, parameters, unit = self._function, self.parameters, self.variant.unit
        width, inputs, rows = parameters.part_width, parameters.inputs, self.variant.together
        starts = self.vectors.row(bias, unit.panel)

        def line(y: SSAValue, sums: Sums) -> Sums:
            before = function.multiply(y, width)

            def pixel(x: SSAValue, sums: Sums) -> Sums:
                number = function.multiply(function.add(before, x), inputs)
                held = function.gep(panel, function.multiply(number, rows * unit.panel))
                ahead = function.gep(self.ahead, function.multiply(number, unit.panel))
                sources = self._sources(y, x)

                def vector(index: SSAValue, sums: Sums) -> Sums:
                    self._prefetch(ahead, index)
                    if self.variant.prefetches:
                        self._prefetch_pixels(sources[-1], index)
                    return self._vector(index, sources, held, sums)

                return function.fold(inputs, sums, vector)

            return function.fold(width, sums, pixel)

        return function.fold(parameters.part_height, starts * self.variant.pixels, line)

    def _prefetch(self, ahead: SSAValue, index: SSAValue) -> None:
        """Prefetches a row of the next panel, once for each vector of channels."""
        function, panel = self._function, self.variant.unit.panel
        row = function.gep(ahead, function.multiply(index, panel))
        for start in range(0, panel, _LINE_ELEMENTS):
            function.prefetch(function.gep(row, start))

    def _prefetch_pixels(self, last: SSAValue, index: SSAValue) -> None:
        """Prefetches a part of the pixels that the next micro-kernel reads, once for each vector of
        channels.
        """
        function, share = self._function, self.variant.pixels * self.variant.together
        following = function.gep(last, self.parameters.source_pixel)
        start = function.gep(following, function.multiply(index, share))
        for part in range(0, share, _LINE_ELEMENTS):
            function.prefetch(function.gep(start, part), cache=2)

    def _sources(self, y: SSAValue, x: SSAValue) -> list[SSAValue]:
        """Returns the addresses that the result pixels read at window position (y, x)."""
        function, parameters = self._function, self.parameters
        place = function.add(
            function.multiply(y, parameters.window_line),
            function.multiply(x, parameters.window_pixel),
        )
        source = function.gep(self.source, place)
        steps = (function.multiply(parameters.source_pixel, pixel) for pixel in self.pixels)
        sources = [function.gep(source, step) for step in steps]
        return self._inside(y, x, sources) if self.variant.padded else sources

    def _inside(self, y: SSAValue, x: SSAValue, sources: Sequence[SSAValue]) -> list[SSAValue]:
        """Replaces addresses outside of the image by the address of zeros."""
        function, parameters = self._function, self.parameters
        y = function.add(self.y, function.multiply(y, parameters.windows.dilation_y))
        x = function.add(self.x, function.multiply(x, parameters.windows.dilation_x))
        is_line = function.compare("ult", y, parameters.windows.height)
        chosen: list[SSAValue] = []
        for source, pixel in zip(sources, self.pixels, strict=True):
            column = function.add(x, function.multiply(parameters.windows.stride_x, pixel))
            is_pixel = function.compare("ult", column, parameters.windows.width)
            is_inside = function.binary(llvm.AndOp, is_line, is_pixel)
            chosen.append(function.select(is_inside, source, self.zeros))
        return chosen

    def _vector(
        self, index: SSAValue, sources: Sequence[SSAValue], held: SSAValue, sums: Sums
    ) -> Sums:
        """Adds the products of one vector of channels to the accumulators."""
        function, vectors, unit = self._function, self.vectors, self.variant.unit
        offset = function.multiply(index, self.parameters.input)
        places = [function.gep(source, offset) for source in sources]
        together = self.variant.together
        panel = function.gep(held, function.multiply(index, together * unit.panel))
        unrolled = next(n for n in range(_MOST_UNROLLED, 0, -1) if together % n == 0)

        def channels(part: SSAValue, sums: Sums) -> Sums:
            first = function.multiply(part, unrolled)
            numbers = [function.gep(place, first) for place in places]
            rows = function.gep(panel, function.multiply(first, unit.panel))
            for channel in range(unrolled):
                addresses = [function.gep(number, channel) for number in numbers]
                row = vectors.row(function.gep(rows, channel * unit.panel), unit.panel)
                values = map(vectors.repeated, addresses)
                sums = add_products(vectors.multiply_add, values, row, sums)
            return sums

        if unrolled == together:
            return channels(function.integer(0), sums)
        return function.fold(function.integer(together // unrolled), sums, channels)


_MOST_UNROLLED = 8
"""Maximum number of channels whose products are unrolled."""

_LINE_ELEMENTS = 16
"""Elements of a cache line."""
