"""Convolutions as products of pixels by weights, without a matrix of windows in memory.

A kernel keeps the results of a few pixels by a panel of output channels in registers while it goes
over the window and the input channels. Channels are last or in blocks of a vector; pixels outside
of the image are read from zeros behind the weights.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Dim, Size, ceildiv
from byoc_mlir.kernels.convolution import Code, Convolution, ConvolutionKernel, Windows, panel_of
from byoc_mlir.kernels.costs import ConvolutionRates, rates
from byoc_mlir.kernels.epilogue import float_bits
from byoc_mlir.kernels.implicit_gemm.code import define_implicit_gemm
from byoc_mlir.kernels.implicit_gemm.micro_kernel import Variant
from byoc_mlir.kernels.implicit_gemm.parameters import Parameters
from byoc_mlir.kernels.implicit_gemm.strips import FlatStrips, Strips, strips_of
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.vectors import FEWEST_LANES, VectorUnit

NAME = "implicit_gemm"
"""What IR and reports call it."""

_LINE = 48
"""About how many pixels are taken for a line where lines do not matter."""

_BLOCK_BYTES = 1 << 15
"""What a block of lines reads of the source for each panel."""

_BLOCK_PIXELS = 48
"""The fewest pixels of a block: how often weights are used that were read once."""


@dataclass(frozen=True)
class _Lines:
    """The pixels of all results as the code sees them."""

    count: Size
    rows: Size
    """Lines of an image."""
    pixels: Size
    """Pixels of a line."""
    strips: Strips
    cut: Size
    """The pixels that `strips` cuts."""


@dataclass(frozen=True)
class ImplicitGemm(ConvolutionKernel):
    """Such a convolution."""

    convolution: Convolution
    unit: VectorUnit

    @property
    def name(self) -> str:
        return NAME

    def milliseconds(self, direct: float, threads: int) -> float:
        it, known = self.convolution, rates(ConvolutionRates)
        filled = it.outputs / (self.panels * self.unit.panel)
        pixels = 4 * hint(math.prod(it.source.shape) + math.prod(it.result.shape))
        weights = 4 * math.prod(self.weights_shape)
        traffic = pixels / known.transformed_bytes + weights / known.weight_bytes
        return direct / filled + traffic / threads

    @property
    def _together(self) -> int:
        """The channels of the source that lie together."""
        return math.gcd(self.convolution.inputs, self.unit.lanes)

    @property
    def _panel_size(self) -> int:
        return self.unit.panel * self.convolution.depth

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """Panels, then as many zeros as a pixel has channels, of the source or of the result."""
        zeros = max(self.convolution.inputs, self.panels * self.unit.panel)
        return (self.panels * self._panel_size + zeros,)

    @property
    def packing(self) -> Hashable:
        return (NAME, self.unit.panel)

    def pack(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        packed = np.zeros(self.weights_shape, np.float32)
        size, columns = self._panel_size, self.unit.panel
        for number in range(self.panels):  # each [height, width, inputs, columns]
            packed[number * size : (number + 1) * size] = panel_of(weights, number, columns).ravel()
        return packed

    def code(self, threads: int) -> Code:
        it = self.convolution
        epilogue = it.epilogue
        strips, residual = self._lines.strips, epilogue.residual
        variant = Variant(
            self.unit, strips.longest, self._together, it.is_padded, residual, epilogue.limits
        )
        define = partial(define_implicit_gemm, variant=variant, strips=strips, bias=epilogue.bias)
        return Code(define, words(self._parameters()))

    @property
    def _is_flat(self) -> bool:
        """Whether each pixel of the result needs one of the source, the next one the next."""
        it = self.convolution
        is_flat = {*it.window, *it.strides} == {1} and not it.is_padded
        is_one_piece = it.source.is_channels_last and it.result.is_channels_last
        return is_flat and (is_one_piece or it.result.shape[0] == 1)

    @property
    def _lines(self) -> _Lines:
        batch, _, height, width = self.convolution.result.shape
        most = self.unit.tile_rows
        if not self._is_flat:
            return _Lines(batch * height, height, width, strips_of(width, most), width)
        pixels = batch * height * width
        if isinstance(pixels, Dim):
            flat = FlatStrips(most, round(_LINE / most))
            count = ceildiv(pixels, flat.line)
            return _Lines(count, count, flat.line, flat, pixels)
        line = min(_divisors(pixels), key=lambda one: abs(one - _LINE))
        return _Lines(pixels // line, pixels // line, line, strips_of(line, most), line)

    def _parameters(self) -> Parameters[Size]:
        it, lines, lanes = self.convolution, self._lines, self.unit.lanes
        strips, long_strips = lines.strips.of(lines.cut)
        windows = Windows.of(it)
        source, result = it.source.strides(self._together), it.result.strides(lanes)
        source_line, result_line = windows.stride_y * source.line, result.line
        if self._is_flat:
            source_line, result_line = (lines.pixels * one.pixel for one in (source, result))
        return Parameters(
            lines=lines.count,
            rows=lines.rows,
            strips=strips,
            long_strips=long_strips,
            blocks=self._blocks(),
            panels=self.panels,
            outputs=it.outputs // lanes,
            panel=self._panel_size,
            window_height=it.window[0],
            window_width=it.window[1],
            inputs=it.inputs // self._together,
            window_line=windows.dilation_y * source.line,
            window_pixel=windows.dilation_x * source.pixel,
            input=source.vector,
            windows=windows,
            source_image=source.image,
            source_line=source_line,
            source_pixel=windows.stride_x * source.pixel,
            source_start=-(windows.top * source.line + windows.left * source.pixel),
            result_image=result.image,
            result_line=result_line,
            result_pixel=result.pixel,
            result_vector=result.vector,
            lower=float_bits(it.epilogue.lower),
            upper=float_bits(it.epilogue.upper),
        )

    def _blocks(self) -> Size:
        """Into how many blocks the lines are cut."""
        it, lines = self.convolution, self._lines
        pixels = hint(lines.pixels)
        read = 4 * pixels * it.inputs * math.prod(it.strides)
        together = max(_BLOCK_BYTES // read, -(-_BLOCK_PIXELS // pixels))
        return ceildiv(lines.count, together)


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


def implicit_gemm_kernel(convolution: Convolution, unit: VectorUnit) -> ImplicitGemm | None:
    """The convolution this way; `None` where that is not written."""
    source, result = convolution.source, convolution.result
    has_vectors = source.is_channels_last and source.has_vectors(FEWEST_LANES)
    if not (has_vectors or source.has_vectors(unit.lanes)) or not result.has_vectors(unit.lanes):
        return None
    if convolution.is_padded and not source.is_channels_last:
        return None
    return ImplicitGemm(convolution, unit)
