"""Integer GEMMs and convolutions of bytes.

Operand A consists of NHWC pixels; the rows of a matrix count as pixels. Operand B consists of
constant weights. A includes its padding, so the code has no border cases. A 32-bit group packs
channels of one pixel, or, if the pixels are dense, of a whole window row, as if this were one long
pixel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size, ceildiv
from byoc_mlir.kernels.convolution import Pair, result_sizes
from byoc_mlir.kernels.costs import ConvolutionCalibration, IntegerCalibration, calibration
from byoc_mlir.kernels.integer_gemm.code import IntegerGemmVariant
from byoc_mlir.kernels.integer_gemm.epilogue import IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.overlapping import WORD, Cut, OverlappingWords
from byoc_mlir.kernels.integer_gemm.parameters import IntegerGemmParameters
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
from byoc_mlir.kernels.parameters import words
from byoc_mlir.tensors import aligned_empty

_SUMS = IntegerEpilogue()

_SAMPLED_PANELS, _SAMPLED_CHANNELS = 4, 256
"""Sample of weights that estimates how many groups overlap: panels, and channels."""

_BLOCK_BYTES = 1 << 16
"""Bytes of A that a block of rows reads for each panel: they stay in L2 on any processor, and the
panel stays in L1."""

_BYTES = np.iinfo(np.int8)

_FEW = (4, 1)
"""Tile heights for results that may have fewer rows than a tile of the unit."""

_BLOCK_ROWS = 48
"""Minimum number of rows of a block: each element of B that is loaded is used for all of them."""


@dataclass(frozen=True)
class IntegerGemm:
    """Integer GEMM of windows `[images, height, width]` of pixels by a matrix.

    The pixels are `[images, lines, pixels, channels]`, of the unit's type of A. The channels of
    each group are filled up to whole 32-bit groups, unless the pixels are dense. The numbers of
    images, rows and pixels may be symbolic.
    """

    unit: IntegerUnit
    images: Size
    lines: Size
    pixels: Size
    channels: int
    """Channels of operand A, before they are filled up."""
    outputs: int
    window: Pair = (1, 1)
    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    epilogue: IntegerEpilogue = _SUMS
    groups: int = 1
    """Number of groups of channels and of outputs; each group has separate weights."""
    shift: int = 0
    """Value that was subtracted from operand B in memory, if it is widened."""
    is_dense: bool = False
    """True if pixels follow each other without a gap; the code then reads a few elements after the
    last pixel. It requires one group, and adjacent pixels in a window's row."""
    overlap: float = 1.0
    """Growth factor of operand B: overlapping groups, divided by groups without overlap."""

    @staticmethod
    def of_matrices(
        unit: IntegerUnit, rows: Size, steps: int, columns: int, epilogue: IntegerEpilogue
    ) -> IntegerGemm:
        """Returns the GEMM `[rows, steps]` by `[steps, columns]`."""
        return IntegerGemm(unit, 1, 1, rows, steps, columns, epilogue=epilogue)

    @property
    def left_channels(self) -> int:
        """Returns the number of elements of A per pixel in memory."""
        if self.is_dense or self.unit.overlaps:
            return self.channels
        return self.groups * self._filled(self.channels // self.groups)

    @property
    def columns(self) -> int:
        """Returns the number of columns of all panels, the length of per-column arrays."""
        return self._panels * self.unit.panel

    @property
    def units(self) -> Size:
        """Returns the number of units of work."""
        return self._blocks * self._panels

    @property
    def products(self) -> Size:
        """Returns the number of MACs."""
        return self.rows * self._products_of_row

    @property
    def planned_products(self) -> int:
        """Returns the number of MACs; if the number of rows is symbolic, that of whole blocks."""
        is_known = isinstance(self.rows, int)
        rows = self.rows if is_known else hint(self._blocks) * self._block_rows
        return hint(rows * self._products_of_row)

    @property
    def _products_of_row(self) -> int:
        return self.outputs * (self.channels // self.groups) * math.prod(self.window)

    @property
    def variants(self) -> tuple[IntegerGemmVariant, ...]:
        """Returns the code's variants, one for each tile height, the largest first.

        There is one variant if the number of rows is known.
        """
        if isinstance(self.rows, int):
            rows = self._tile_rows(self.rows)
            tiles = self.rows // (rows * hint(self._blocks))
            parts = self.unit.copies if tiles >= self.unit.copies else 1
            return (IntegerGemmVariant(self.unit, rows, self.epilogue, parts, self._is_matrix),)
        sizes = (self.unit.tile_rows, *(few for few in _FEW if few < self.unit.tile_rows))
        return tuple(
            IntegerGemmVariant(self.unit, rows, self.epilogue, is_matrix=self._is_matrix)
            for rows in sizes
        )

    @property
    def _is_matrix(self) -> bool:
        """True if windows are single pixels and no pixel is skipped, so that all pixels form one
        row.
        """
        return self.window == self.strides == (1, 1)

    def _tile_rows(self, rows: int) -> int:
        """Returns the fastest tile height for `rows` rows.

        The overhead of a tile is as long as the time of one row.
        """
        accepted = range(min(self.unit.tile_rows, rows), 0, -1)
        return min(accepted, key=lambda tile: ceildiv(rows, tile) * (tile + 1))

    def milliseconds(self, rows: int) -> float:
        """Estimates the run time of `rows` rows on one thread, in milliseconds.

        For each block, operand B is read from memory; for each tile, it is widened. Widening a
        vector takes as long as multiplying one.
        """
        right = self.depth * self.columns * self.overlap
        tiles, blocks = (-(-rows // size) for size in (self._tile_rows(rows), self._block_rows))
        widened = tiles * right // self.unit.group if self.unit.widens else 0
        known = calibration(IntegerCalibration)
        rate = known.bytes if self.unit.overlaps else known.products
        multiplying = (rows * right + widened) / rate
        return (
            multiplying
            + blocks
            * self.overlap
            * self.right_bytes
            / calibration(ConvolutionCalibration).weight_bytes
        )

    @property
    def right_bytes(self) -> int:
        """Returns the bytes of operand B in memory."""
        return self.depth * self.columns * self.unit.right_type.itemsize

    def forms(self, right: NDArray[np.integer]) -> tuple[IntegerGemm, ...]:
        """Returns the GEMM with operand B in each memory format that its values fit."""
        lowest, highest = int(right.min()), int(right.max())
        fits = _BYTES.min <= lowest and highest <= _BYTES.max
        if fits and self.unit.has_vnni:
            return (self,)
        pairs = replace(self, unit=replace(self.unit, has_vnni=False))
        if highest - lowest > _BYTES.max - _BYTES.min:
            return (pairs,)
        shift = 0 if fits else lowest - _BYTES.min
        widened = replace(pairs, unit=replace(pairs.unit, widens=True), shift=shift)
        return pairs, widened, *(self.overlapping(right) if fits else ())

    def overlapping(self, right: NDArray[np.integer]) -> tuple[IntegerGemm, ...]:
        """Returns the GEMM with overlapping groups of bytes for these weights.

        The result is empty if the unit does not saturate, or if a run is shorter than a group.
        """
        if not self.unit.saturates:
            return ()
        unit = replace(self.unit, overlaps=True).for_outputs(self._group_outputs)
        it = replace(self, unit=unit)
        runs = it._runs(right[:, :, :_SAMPLED_CHANNELS, : self._group_outputs])
        numbers = runs.shape[1]
        if numbers < WORD:
            return ()
        cut = Cut.of(list(islice(unit.panels_of(runs), _SAMPLED_PANELS)))
        overlap = cut.words / (len(cut.counts) * -(-numbers // unit.group))
        return (replace(it, overlap=overlap),)

    def pack(self, right: NDArray[np.integer]) -> NDArray[np.integer]:
        """Packs weights `[height, width, channels / groups, outputs]` for the code.

        The weights may be large, so the method allocates no other array of their size.
        """
        unit, panels = self.unit, self._in_panels(right)
        if unit.overlaps:
            return OverlappingWords.of(panels).packed
        shape = (self._panels, self.depth // unit.group, unit.panel, unit.group)
        packed = aligned_empty(shape, unit.right_type)
        for words_, panel in zip(packed, panels, strict=True):
            words_[...] = unit.words_of(panel - self.shift)
        return packed

    def _in_panels(self, right: NDArray[np.integer]) -> Iterator[NDArray[np.integer]]:
        for group in np.split(right, self.groups, -1):
            yield from self.unit.panels_of(self._runs(group))

    def _runs(self, right: NDArray[np.integer]) -> NDArray[np.integer]:
        """Returns the weights of a group of channels as `[runs, numbers, outputs]`."""
        height, width, channels, outputs = right.shape
        together = self._together if self.is_dense or self.unit.overlaps else 1
        return right.reshape(height * width // together, channels * together, outputs)

    def in_columns(self, numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        """Spreads one value for each output over the columns, with zeros after each group."""
        columns = np.zeros((self.groups, self.columns // self.groups), numbers.dtype)
        columns[:, : self._group_outputs] = numbers.reshape(self.groups, -1)
        return columns.reshape(-1)

    def parameters(self) -> tuple[Size, ...]:
        """Returns the words of the code's parameters."""
        (stride_y, stride_x), (dilation_y, dilation_x) = self.strides, self.dilation
        height, width = self._result
        if self._is_matrix:
            height, width = 1, self.rows
        pixel, together = self.left_channels, self._together
        line = self.pixels * pixel
        return words(
            IntegerGemmParameters(
                rows=self.rows,
                blocks=self._blocks,
                panels=self._panels,
                outputs=self.outputs,
                group_panels=self._group_panels,
                group_outputs=self._group_outputs,
                height=height,
                width=width,
                image=self.lines * line,
                line=stride_y * line,
                pixel=stride_x * pixel,
                window_height=self.window[0],
                window_width=self.window[1] // together,
                window_line=dilation_y * line,
                window_pixel=dilation_x * pixel,
                group=pixel // self.groups,
                words=self._words,
                shift=self.shift,
                bytes=self.epilogue.parameters(),
            )
        )

    @property
    def _together(self) -> int:
        """Returns the number of pixels of a window row that are adjacent in memory."""
        return self.window[1] if self.dilation[1] == self.groups == 1 else 1

    @property
    def _words(self) -> int:
        """Returns the number of 32-bit groups of adjacent pixels, for one group of channels."""
        numbers = self._together * self.left_channels // self.groups
        return self._filled(numbers) // self.unit.group

    def _filled(self, numbers: int) -> int:
        """Rounds a number of elements up to whole 32-bit groups."""
        return -(-numbers // self.unit.group) * self.unit.group

    @property
    def depth(self) -> int:
        """Returns the number of elements of A in a window, for one group of channels, filled up to
        packed groups.
        """
        return math.prod(self.window) // self._together * self._words * self.unit.group

    @property
    def _panels(self) -> int:
        return self.groups * self._group_panels

    @property
    def _group_panels(self) -> int:
        return -(-self._group_outputs // self.unit.panel)

    @property
    def _group_outputs(self) -> int:
        return self.outputs // self.groups

    @property
    def _result(self) -> tuple[Size, Size]:
        """Returns height and width of an image of the result."""
        return result_sizes((self.lines, self.pixels), self.window, self.strides, self.dilation)

    @property
    def rows(self) -> Size:
        """Returns the rows of the result: the pixels of all images."""
        return self.images * math.prod(self._result)

    @property
    def _blocks(self) -> Size:
        """Returns the number of blocks of rows; each block has at least one tile."""
        return ceildiv(self.rows, self._block_rows)

    @property
    def _block_rows(self) -> int:
        channels = self._filled(self.left_channels // self.groups)
        read = channels * self.unit.left_type.itemsize * math.prod(self.strides)
        return max(_BLOCK_BYTES // read, _BLOCK_ROWS)
