"""Convolutions as products of pixels by weights, without a matrix of windows in memory.

A kernel keeps the results of a few pixels by a panel of output channels in registers while it goes
over the window and the input channels; where a panel has many weights, over a part of the window,
for all pixels of a block before the next part. Channels are last or in blocks of a vector; pixels
outside of the image are read from zeros behind the weights.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size, ceildiv
from byoc_mlir.kernels.convolution import (
    Convolution,
    ConvolutionKernel,
    KernelCode,
    Windows,
    panel_of,
)
from byoc_mlir.kernels.costs import ConvolutionCalibration, calibration
from byoc_mlir.kernels.epilogue import float_bits
from byoc_mlir.kernels.implicit_gemm.code import define_implicit_gemm
from byoc_mlir.kernels.implicit_gemm.micro_kernel import ImplicitGemmParameters, ImplicitGemmVariant
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.strips import PieceStrips, Strips, strips_of
from byoc_mlir.kernels.vectors import FEWEST_LANES, VectorUnit
from byoc_mlir.tensors import aligned_empty

NAME = "implicit_gemm"
"""What IR and reports call it."""

_MOST_PIXELS = 13
"""Of a kernel: LLVM keeps the sums of 13 pixels by two vectors in registers, and spills 14."""

_PIECE = 48
"""About how many pixels a piece of a long line has."""

_BLOCK_BYTES = 1 << 15
"""What a block reads of the source for each panel."""

_BLOCK_PIXELS = 48
"""The fewest pixels of a block: how often weights are used that were read once."""

MOST_PART_BYTES = 1 << 18
"""Of the weights that all strips of a block meet before the next ones: a second cache of 256 KB,
the smallest that x86-64 servers have."""

_LINE_BYTES = 4 * _BLOCK_BYTES
"""What a line reads of the source for each panel; longer ones are cut into pieces."""


@dataclass(frozen=True)
class _Lines:
    """The lines of all results as the code sees them."""

    images: Size
    rows: Size
    """Lines of an image."""
    pieces: Size
    """Pieces of a line."""
    pixels: Size
    """Pixels from piece to piece."""
    strips: Strips
    cut: Size
    """The pixels that `strips` cuts."""

    @property
    def count(self) -> Size:
        """All pieces."""
        return self.images * self.rows * self.pieces


@dataclass(frozen=True)
class ImplicitGemm(ConvolutionKernel):
    """Such a convolution."""

    convolution: Convolution
    unit: VectorUnit

    @property
    def name(self) -> str:
        return NAME

    @property
    def tilings(self) -> Mapping[str, ImplicitGemm]:
        """With panels of other vectors: fewer rows and more columns, or the other way round."""
        others = self.unit.filled_by(self.convolution.outputs)
        return {
            f"panels={unit.panel_vectors}": replace(self, unit=unit)
            for unit in others
            if unit != self.unit
        }

    def milliseconds(self, direct: float, threads: int) -> float:
        it, known = self.convolution, calibration(ConvolutionCalibration)
        filled = it.outputs / (self.panels * self.unit.panel)
        pixels = 4 * hint(math.prod(it.source.shape) + math.prod(it.result.shape))
        weights = 4 * math.prod(self.weights_shape)
        traffic = pixels / known.transformed_bytes + weights / known.weight_bytes
        return direct / filled + traffic / threads

    @property
    def _row(self) -> int:
        """The numbers of the source that are summed together: the channels of a pixel, or, where
        these are few, of a line of the window.
        """
        it = self.convolution
        return it.inputs * it.window[1] if it.has_few_channels else it.inputs

    @property
    def _together(self) -> int:
        """Those of them that lie together."""
        few = self.convolution.has_few_channels
        return self._row if few else math.gcd(self._row, self.unit.lanes)

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
        packed = aligned_empty(self.weights_shape, np.float32)
        size, columns = self._panel_size, self.unit.panel
        for number in range(self.panels):  # each [height, width, inputs, columns]
            packed[number * size : (number + 1) * size] = panel_of(weights, number, columns).ravel()
        packed[self.panels * size :] = 0
        return packed

    def code(self, threads: int) -> KernelCode:
        it = self.convolution
        epilogue = it.epilogue
        strips, residual = self._lines.strips, epilogue.residual
        variant = ImplicitGemmVariant(
            self.unit,
            strips.longest,
            self._together,
            it.is_padded,
            residual,
            epilogue.limits,
            self._prefetches,
        )
        define = partial(
            define_implicit_gemm,
            variant=variant,
            strips=strips,
            bias=epilogue.bias,
            in_parts=self.parts > 1,
        )
        return KernelCode(define, words(self._parameters()))

    @property
    def parts(self) -> int:
        """Into how many parts the window is cut."""
        return math.prod(self.convolution.window) // math.prod(self._part)

    @property
    def _part(self) -> tuple[int, int]:
        """The window, or the largest part of it whose weights stay near: a line, or a pixel,
        where its channels are summed by themselves.
        """
        height, width = self.convolution.window
        pixel = 4 * self.unit.panel * self.convolution.inputs
        parts = ((height, width), (1, width))
        least = (1, self._row // self.convolution.inputs)
        return next((one for one in parts if math.prod(one) * pixel <= MOST_PART_BYTES), least)

    @property
    def _is_flat(self) -> bool:
        """Whether each pixel of the result needs one of the source, the next one the next."""
        it = self.convolution
        is_flat = {*it.window, *it.strides} == {1} and not it.is_padded
        is_one_piece = it.source.is_channels_last and it.result.is_channels_last
        return is_flat and (is_one_piece or it.result.shape[0] == 1)

    @property
    def _prefetches(self) -> bool:
        """Whether pixels are prefetched: where they lie one after the other, and may be many."""
        source = self.convolution.source
        return source.is_symbolic and source.is_channels_last and self._is_flat

    @property
    def _most_pixels(self) -> int:
        """Of a kernel."""
        return min(self.unit.tile_rows, _MOST_PIXELS)

    @property
    def _lines(self) -> _Lines:
        batch, _, height, width = self.convolution.result.shape
        if self._is_flat:
            return self._in_pieces(1, 1, batch * height * width)
        if self._read_of(hint(width)) > _LINE_BYTES:
            return self._in_pieces(batch, height, width)
        return _Lines(batch, height, 1, width, strips_of(width, self._most_pixels), width)

    def _in_pieces(self, images: Size, rows: Size, pixels: Size) -> _Lines:
        """Lines of so many pixels, cut into pieces: of equal length where that is possible."""
        most = self._most_pixels
        length = _equal_pieces(pixels) if isinstance(pixels, int) else None
        if length is not None:
            return _Lines(images, rows, pixels // length, length, strips_of(length, most), length)
        strips = PieceStrips(most, round(_PIECE / most))
        pieces = ceildiv(pixels, strips.pixels)
        return _Lines(images, rows, pieces, strips.pixels, strips, pixels)

    def _read_of(self, pixels: int) -> int:
        """The bytes of the source that so many pixels of a line are made of."""
        it = self.convolution
        return 4 * pixels * it.inputs * math.prod(it.strides)

    def _parameters(self) -> ImplicitGemmParameters[Size]:
        it, lines, lanes = self.convolution, self._lines, self.unit.lanes
        strips, long_strips = lines.strips.of(lines.cut)
        windows, (height, width) = Windows.of(it), self._part
        source, result = it.source.strides(self._together), it.result.strides(lanes)
        return ImplicitGemmParameters(
            pieces=lines.count,
            image_pieces=lines.rows * lines.pieces,
            line_pieces=lines.pieces,
            piece_pixels=lines.pixels,
            strips=strips,
            long_strips=long_strips,
            blocks=self._blocks(),
            panels=self.panels,
            outputs=it.outputs // lanes,
            panel=self._panel_size,
            part=self._panel_size // self.parts,
            parts=self.parts,
            line_parts=it.window[1] // width,
            part_height=height,
            part_width=width * it.inputs // self._row,
            inputs=self._row // self._together,
            window_line=windows.dilation_y * source.line,
            window_pixel=windows.dilation_x * source.pixel,
            input=source.vector,
            windows=windows,
            source_image=source.image,
            source_line=windows.stride_y * source.line,
            source_pixel=windows.stride_x * source.pixel,
            source_start=-(windows.top * source.line + windows.left * source.pixel),
            result_image=result.image,
            result_line=result.line,
            result_pixel=result.pixel,
            result_vector=result.vector,
            lower=float_bits(it.epilogue.lower),
            upper=float_bits(it.epilogue.upper),
        )

    def _blocks(self) -> Size:
        """Into how many blocks the pieces are cut."""
        lines = self._lines
        pixels = hint(lines.pixels)
        together = max(_BLOCK_BYTES // self._read_of(pixels), -(-_BLOCK_PIXELS // pixels))
        return ceildiv(lines.count, together)


def _equal_pieces(pixels: int) -> int | None:
    """The length of pieces that so many pixels make without a rest."""
    if pixels <= _PIECE:
        return pixels
    lengths = [one for one in range(_PIECE // 2, 2 * _PIECE + 1) if pixels % one == 0]
    return min(lengths, key=lambda one: abs(one - _PIECE), default=None)


def implicit_gemm_kernel(convolution: Convolution, unit: VectorUnit) -> ImplicitGemm | None:
    """The convolution this way; `None` where that is not written."""
    source, result = convolution.source, convolution.result
    if not result.has_vectors(unit.lanes):
        return None
    if convolution.has_few_channels:
        return ImplicitGemm(convolution, unit) if _has_whole_lines(convolution) else None
    has_vectors = source.is_channels_last and source.has_vectors(FEWEST_LANES)
    if not (has_vectors or source.has_vectors(unit.lanes)):
        return None
    if convolution.is_padded and not source.is_channels_last:
        return None
    return ImplicitGemm(convolution, unit)


def _has_whole_lines(convolution: Convolution) -> bool:
    """Whether each line of a window lies in one piece, within the source."""
    is_dense = convolution.dilation[1] == 1 and not convolution.is_padded
    return is_dense and convolution.source.is_channels_last
