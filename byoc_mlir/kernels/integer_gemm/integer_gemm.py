"""Matrix products and convolutions of bytes.

The left numbers are pixels with their channels last (the rows of a matrix are pixels, too); the
right ones are constant weights. Padding is there already: rows are made of what is in memory.
Words are made of the channels of a pixel, or of those of all pixels in a line of the window, as if
these were one long pixel.
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
"""Weights that tell how many words overlap."""

_BLOCK_BYTES = 1 << 16
"""What a block of rows reads of the left numbers for each panel: they stay in the second
cache of any processor, and the panel in the first."""

_BYTES = np.iinfo(np.int8)

_FEW = (4, 1)
"""Rows of the tiles for results that may have fewer rows than a tile of the unit."""

_BLOCK_ROWS = 48
"""The fewest rows of a block: how often right numbers are used that were read once."""


@dataclass(frozen=True)
class IntegerGemm:
    """A product of windows `[images, height, width]` of pixels by a matrix.

    The pixels are `[images, lines, pixels, channels]`, of the unit's left type; the channels of
    each group are filled up to whole words, unless the pixels are dense. How many images, lines
    and pixels there are may be symbolic.
    """

    unit: IntegerUnit
    images: Size
    lines: Size
    pixels: Size
    channels: int
    """Those of the left numbers, before they are filled up."""
    outputs: int
    window: Pair = (1, 1)
    strides: Pair = (1, 1)
    dilation: Pair = (1, 1)
    epilogue: IntegerEpilogue = _SUMS
    groups: int = 1
    """Of channels and of outputs, each multiplied with its own weights."""
    shift: int = 0
    """What right numbers that are widened are less in memory."""
    is_dense: bool = False
    """Whether nothing is between two pixels; some numbers behind the last one are read. Then there
    is one group, and the pixels of a window's line are neighbours."""
    overlap: float = 1.0
    """How many words that overlap there are for each that need not."""

    @staticmethod
    def of_matrices(
        unit: IntegerUnit, rows: Size, steps: int, columns: int, epilogue: IntegerEpilogue
    ) -> IntegerGemm:
        """`[rows, steps]` by `[steps, columns]`."""
        return IntegerGemm(unit, 1, 1, rows, steps, columns, epilogue=epilogue)

    @property
    def left_channels(self) -> int:
        """The left numbers of a pixel in memory."""
        if self.is_dense or self.unit.overlaps:
            return self.channels
        return self.groups * self._filled(self.channels // self.groups)

    @property
    def columns(self) -> int:
        """Those of all panels: of what sums begin with, of scales and offsets."""
        return self._panels * self.unit.panel

    @property
    def units(self) -> Size:
        """Into how many units the work is cut."""
        return self._blocks * self._panels

    @property
    def products(self) -> Size:
        """How many products of numbers there are."""
        inner = self.channels // self.groups * math.prod(self.window)
        return self.rows * self.outputs * inner

    @property
    def variants(self) -> tuple[IntegerGemmVariant, ...]:
        """What the code depends on: of tiles of so many rows, the largest that the result has. The
        largest comes first; there is one where the rows are a number.
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
        """Whether windows are single pixels, and none is left out: all are one line."""
        return self.window == self.strides == (1, 1)

    def _tile_rows(self, rows: int) -> int:
        """Those of the tiles that are fastest for so many: a tile takes the time of its rows, and
        of one more to begin and to end."""
        accepted = range(min(self.unit.tile_rows, rows), 0, -1)
        return min(accepted, key=lambda tile: ceildiv(rows, tile) * (tile + 1))

    def milliseconds(self, rows: int) -> float:
        """About what so many rows take on one thread.

        Right numbers come from memory for each block, and are widened for each tile: a vector of
        them as fast as one is multiplied.
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
        """Those of the right numbers in memory."""
        return self.depth * self.columns * self.unit.right_type.itemsize

    def forms(self, right: NDArray[np.integer]) -> tuple[IntegerGemm, ...]:
        """The product with its right numbers in each form in memory that they fit."""
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
        """The product in words that overlap as these right numbers, bytes, ask for; nothing where
        that cannot be: words have to be in a run of numbers."""
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
        """The weights `[height, width, channels / groups, outputs]` as the code reads them; they
        may be large, so nothing but the result is as large as they are."""
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
        """The weights of a group as `[runs, numbers, outputs]`."""
        height, width, channels, outputs = right.shape
        together = self._together if self.is_dense or self.unit.overlaps else 1
        return right.reshape(height * width // together, channels * together, outputs)

    def in_columns(self, numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        """One number for each output, as many as there are columns: zeros behind each group."""
        columns = np.zeros((self.groups, self.columns // self.groups), numbers.dtype)
        columns[:, : self._group_outputs] = numbers.reshape(self.groups, -1)
        return columns.reshape(-1)

    def parameters(self) -> tuple[Size, ...]:
        """The words that the code is told."""
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
        """The pixels of a window's line that are neighbours in memory."""
        return self.window[1] if self.dilation[1] == self.groups == 1 else 1

    @property
    def _words(self) -> int:
        """Those that a group has of the pixels which are neighbours."""
        numbers = self._together * self.left_channels // self.groups
        return self._filled(numbers) // self.unit.group

    def _filled(self, numbers: int) -> int:
        """The numbers of so many that fill whole words."""
        return -(-numbers // self.unit.group) * self.unit.group

    @property
    def depth(self) -> int:
        """The left numbers of a group in a window, filled up."""
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
        """Height and width of an image of the result."""
        return result_sizes((self.lines, self.pixels), self.window, self.strides, self.dilation)

    @property
    def rows(self) -> Size:
        """Those of the result: the pixels of all images."""
        return self.images * math.prod(self._result)

    @property
    def _blocks(self) -> Size:
        """Into how many blocks the rows are cut; each has a tile at least."""
        return ceildiv(self.rows, self._block_rows)

    @property
    def _block_rows(self) -> int:
        channels = self._filled(self.left_channels // self.groups)
        read = channels * self.unit.left_type.itemsize * math.prod(self.strides)
        return max(_BLOCK_BYTES // read, _BLOCK_ROWS)
