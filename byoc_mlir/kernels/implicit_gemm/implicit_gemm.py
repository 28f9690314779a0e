"""Convolutions as GEMMs of pixels by weights, without an im2col matrix in memory.

A micro-kernel keeps the results of a few pixels by a panel of output channels in registers, while
it iterates over the window and the input channels. If a panel has too many weights for L2, the
window is processed in parts: one part for all pixels of a block, then the next part. The layout is
NHWC, or blocks of one vector. Pixels outside of the image are read from zeros after the weights.
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
from byoc_mlir.kernels.gemm import short_rows
from byoc_mlir.kernels.implicit_gemm.code import define_implicit_gemm
from byoc_mlir.kernels.implicit_gemm.micro_kernel import ImplicitGemmParameters, ImplicitGemmVariant
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.strips import ClampedStrips, LevelStrips, Strips
from byoc_mlir.kernels.vectors import FEWEST_LANES, VectorUnit
from byoc_mlir.locks import cached_property
from byoc_mlir.tensors import aligned_empty

NAME = "implicit_gemm"
"""Name of the algorithm in IR and reports."""

_MOST_PIXELS = 13
"""Maximum pixels of a micro-kernel: LLVM keeps the sums of 13 pixels by two vectors in registers,
and spills with 14."""

_PIECE = 48
"""Approximate number of pixels in a piece of a long row."""

_BLOCK_BYTES = 1 << 15
"""Bytes of the source that a block reads for each panel."""

_BLOCK_PIXELS = 48
"""Minimum number of pixels of a block: each weight that is loaded is used for all of them."""

MOST_PART_BYTES = 1 << 18
"""Bytes of the weights that all strips of a block use before the next part: an L2 of 256 KB, the
smallest of x86-64 servers."""

_LINE_BYTES = 4 * _BLOCK_BYTES
"""Bytes of the source that a row reads for each panel; longer rows are cut into pieces."""


@dataclass(frozen=True)
class _Lines:
    """Rows of all results, cut into pieces, as the code iterates over them."""

    images: Size
    rows: Size
    """Rows of an image."""
    pieces: Size
    """Pieces of a row."""
    pixels: Size
    """Distance between pieces, in pixels."""
    strips: Strips
    row: Size
    """Pixels of a row."""

    @property
    def count(self) -> Size:
        """Returns the number of all pieces."""
        return self.images * self.rows * self.pieces


@dataclass(frozen=True)
class ImplicitGemm(ConvolutionKernel):
    """Convolution as an implicit GEMM."""

    convolution: Convolution
    unit: VectorUnit

    @property
    def name(self) -> str:
        return NAME

    @property
    def tilings(self) -> Mapping[str, ImplicitGemm]:
        """Returns variants with other panel widths: more columns and fewer rows, or the reverse."""
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
        """Returns the number of products in a contiguous sum over the source.

        It is the number of channels of a pixel or, if there are few, of a window row.
        """
        it = self.convolution
        return it.inputs * it.window[1] if it.has_few_channels else it.inputs

    @property
    def _together(self) -> int:
        """Returns the number of these `_row` elements that are adjacent in memory."""
        few = self.convolution.has_few_channels
        return self._row if few else math.gcd(self._row, self.unit.lanes)

    @property
    def _panel_size(self) -> int:
        return self.unit.panel * self.convolution.depth

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """Returns the shape of the packed weights, without the zeros that follow the panels.

        There are as many zeros as the source or the result has channels.
        """
        zeros = max(self.convolution.inputs, self.panels * self.unit.panel)
        return (self.panels * self._panel_size + zeros,)

    @property
    def packing(self) -> Hashable:
        return (NAME, self.unit.panel)

    def pack(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        packed = aligned_empty(self.weights_shape, np.float32)
        size, columns = self._panel_size, self.unit.panel
        for number in range(self.panels):  # each is [height, width, inputs, columns]
            packed[number * size : (number + 1) * size] = panel_of(weights, number, columns).ravel()
        packed[self.panels * size :] = 0
        return packed

    def code(self, threads: int) -> KernelCode:
        it = self.convolution
        epilogue = it.epilogue
        strips, limits = self._lines.strips, epilogue.limits
        is_general = it.source.is_channels_last and not it.has_few_channels and not self._is_flat
        variant = ImplicitGemmVariant(
            self.unit,
            strips.longest,
            self._together,
            is_general,
            epilogue.residual,
            "relu" if is_general and limits == "none" else limits,
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
        """Returns the number of parts of the window."""
        return math.prod(self.convolution.window) // math.prod(self._part)

    @property
    def _part(self) -> tuple[int, int]:
        """Returns height and width of the largest window part whose weights stay in L2.

        The part is the whole window, a row or a pixel; if there are few channels, it is at least a
        row.
        """
        height, width = self.convolution.window
        pixel = 4 * self.unit.panel * self.convolution.inputs
        parts = ((height, width), (1, width))
        least = (1, self._row // self.convolution.inputs)
        return next((one for one in parts if math.prod(one) * pixel <= MOST_PART_BYTES), least)

    @property
    def _is_flat(self) -> bool:
        """True if result pixels correspond to source pixels one to one, in the same order."""
        it = self.convolution
        is_flat = {*it.window, *it.strides} == {1} and not it.is_padded
        is_one_piece = it.source.is_channels_last and it.result.is_channels_last
        return is_flat and (is_one_piece or it.result.shape[0] == 1)

    @property
    def _prefetches(self) -> bool:
        """True if the code prefetches pixels: they are contiguous, and there may be many."""
        source = self.convolution.source
        return source.is_symbolic and source.is_channels_last and self._is_flat

    @property
    def _most_pixels(self) -> int:
        """Returns the maximum number of pixels of a micro-kernel."""
        return min(self.unit.tile_rows, _MOST_PIXELS)

    @cached_property
    def _lines(self) -> _Lines:
        batch, _, height, width = self.convolution.result.shape
        if self._is_flat:
            return self._in_pieces(1, 1, batch * height * width)
        if self._read_of(hint(width)) > _LINE_BYTES:
            return self._in_pieces(batch, height, width)
        return _Lines(batch, height, 1, width, self._strips(width), width)

    def _in_pieces(self, images: Size, rows: Size, pixels: Size) -> _Lines:
        """Returns rows of `pixels` pixels, cut into pieces of equal length if possible."""
        length = _equal_pieces(pixels) if isinstance(pixels, int) else None
        if length is not None:
            return _Lines(images, rows, pixels // length, length, self._strips(length), pixels)
        strips = self._any_strips
        length = strips.longest * round(_PIECE / strips.longest)
        return _Lines(images, rows, ceildiv(pixels, length), length, strips, pixels)

    def _strips(self, pixels: Size) -> Strips:
        is_known = isinstance(pixels, int)
        return LevelStrips.of(pixels, self._most_pixels) if is_known else self._any_strips

    @property
    def _any_strips(self) -> Strips:
        """Returns the strips for rows of any length."""
        return ClampedStrips(self._most_pixels, short_rows(self.unit.panel_vectors))

    def _read_of(self, pixels: int) -> int:
        """Returns the bytes of the source that are read for `pixels` result pixels of a row."""
        it = self.convolution
        return 4 * pixels * it.inputs * math.prod(it.strides)

    def _parameters(self) -> ImplicitGemmParameters[Size]:
        it, lines, lanes = self.convolution, self._lines, self.unit.lanes
        windows, (height, width) = Windows.of(it), self._part
        source, result = it.source.strides(self._together), it.result.strides(lanes)
        return ImplicitGemmParameters(
            pieces=lines.count,
            image_pieces=lines.rows * lines.pieces,
            line_pieces=lines.pieces,
            piece_pixels=lines.pixels,
            row_pixels=lines.row,
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
        """Returns the number of blocks of pieces."""
        lines = self._lines
        pixels = hint(lines.pixels)
        together = max(_BLOCK_BYTES // self._read_of(pixels), -(-_BLOCK_PIXELS // pixels))
        return ceildiv(lines.count, together)


def _equal_pieces(pixels: int) -> int | None:
    """Returns the length near `_PIECE` of equal pieces of `pixels` pixels, or `None`."""
    if pixels <= _PIECE:
        return pixels
    lengths = [one for one in range(_PIECE // 2, 2 * _PIECE + 1) if pixels % one == 0]
    return min(lengths, key=lambda one: abs(one - _PIECE), default=None)


def implicit_gemm_kernel(convolution: Convolution, unit: VectorUnit) -> ImplicitGemm | None:
    """Returns the convolution as an implicit GEMM, or `None` if its layout is not supported."""
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
    """True if each row of a window is contiguous and within the source."""
    is_dense = convolution.dilation[1] == 1 and not convolution.is_padded
    return is_dense and convolution.source.is_channels_last
