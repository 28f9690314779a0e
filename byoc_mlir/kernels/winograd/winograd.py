"""Convolutions by Winograd's algorithm, F(n x n, r x r), as matrix products of tiles.

Tiles of n + r - 1 pixels along each axis, which overlap by r - 1, become (n + r - 1)^2 matrices of
tiles by channels. Each matrix is multiplied by a matrix of input by output channels, computed from
the weights. The products become tiles of n x n pixels. F(4x4, 3x3) has 36 multiplications for each
pair of channels, the direct algorithm 144; F(4x4, 5x5) has 64 instead of 400.

Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, https://arxiv.org/abs/1509.09308
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Set
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Dim, Size, ceildiv
from byoc_mlir.kernels.convolution import (
    Convolution,
    ConvolutionKernel,
    Image,
    KernelCode,
    Pair,
    panel_of,
)
from byoc_mlir.kernels.costs import ConvolutionCalibration, calibration
from byoc_mlir.kernels.epilogue import float_bits
from byoc_mlir.kernels.parameters import words
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.algorithm import ALGORITHMS, Algorithm
from byoc_mlir.kernels.winograd.code import define_winograd, strips_of
from byoc_mlir.kernels.winograd.parameters import ImageParameters, WinogradParameters
from byoc_mlir.kernels.winograd.pixels import FloatPixels, Pixels
from byoc_mlir.locks import cached_property
from byoc_mlir.tensors import aligned_empty

_FEWEST_TILES, _MOST_TILES = 16, 64
"""Minimum and maximum number of tiles of a block: each weight that is loaded is used for all of
them."""

_WEIGHTS_TO_ROWS = 2
"""Approximate ratio of the weight matrices' size to the size of a block's matrices."""

_MOST_WEIGHTS = 1 << 20
"""Maximum number of weights for each tile; 512 channels at 7² have 2.4 million in F(4x4)."""

_PACKED_TOGETHER = 1 << 18
"""MACs of the weight transform's chunks, whose points fit in a cache. For larger chunks OpenBLAS
starts threads, which wait for each other longer than they compute."""

_TILE_GAP = 16
"""Elements between the rows of consecutive tiles, so that the same row of several tiles falls into
different cache sets."""


@dataclass(frozen=True)
class Matrices:
    """Memory of one block's matrices: for each tile, a row of each matrix."""

    matrices: int
    tiles: int
    channels: int

    @property
    def tile(self) -> int:
        """Returns the elements between tiles."""
        return self.matrices * self.channels + _TILE_GAP

    @property
    def elements(self) -> int:
        """Returns the number of elements of all matrices."""
        return self.tiles * self.tile


@dataclass(frozen=True)
class Blocks:
    """Partition of the tiles among threads.

    If there are enough tiles, or if their number is symbolic, they are cut into blocks. One thread
    then runs all steps of a block, in its own matrices. Otherwise all tiles are one block: each
    thread transforms some tiles and multiplies by some panels of weights.
    """

    tiles: Size
    """Total number of tiles."""
    count: Size
    threads: int
    source: Matrices
    result: Matrices

    @property
    def elements(self) -> int:
        """Returns the number of elements of one block's matrices."""
        return self.source.elements + self.result.elements

    @property
    def byte_size(self) -> int:
        """Returns the bytes of all blocks that are processed at the same time."""
        most = self.count if isinstance(self.count, int) else self.threads
        return 4 * self.elements * min(most, self.threads)

    @property
    def sizes(self) -> Set[int]:
        """Returns the possible numbers of tiles of a block."""
        if not isinstance(self.tiles, int) or not isinstance(self.count, int):
            return {*range(1, self.source.tiles + 1)}
        return {self.tiles // self.count, -(-self.tiles // self.count)}


@dataclass(frozen=True)
class Winograd(ConvolutionKernel):
    """Convolution by Winograd's algorithm."""

    convolution: Convolution
    unit: VectorUnit
    algorithm: Algorithm

    @property
    def name(self) -> str:
        return self.algorithm.name

    @cached_property
    def grid(self) -> tuple[Size, Size, Size]:
        """Returns the number of images, and the tiles of each image along height and width."""
        batch, _, height, width = self.convolution.result.shape
        step = self.algorithm.step
        return batch, ceildiv(height, step), ceildiv(width, step)

    @cached_property
    def tiles(self) -> Size:
        """Returns the number of tiles of all images."""
        return math.prod(self.grid)

    def blocks(self, threads: int) -> Blocks:
        """Returns the partition of the tiles among `threads` threads."""
        inputs, outputs = self.convolution.inputs, self.convolution.outputs
        balanced = inputs * outputs // (inputs + outputs) // _WEIGHTS_TO_ROWS
        most = min(max(balanced, _FEWEST_TILES), _MOST_TILES)
        count, tiles = _cut(self.tiles, most, threads)
        source = Matrices(self.algorithm.matrices, tiles, inputs)
        result = Matrices(self.algorithm.matrices, tiles, self.panels * self.unit.panel)
        return Blocks(self.tiles, count, threads, source, result)

    def workspace_bytes(self, threads: int) -> int:
        return self.blocks(threads).byte_size

    @property
    def weights_shape(self) -> tuple[int, int, int, int]:
        """Returns the shape of the packed weights: matrix, panel, input channel, column."""
        matrices, panel = self.algorithm.matrices, self.unit.panel
        return (matrices, self.panels, self.convolution.inputs, panel)

    @property
    def is_heavy(self) -> bool:
        return math.prod(self.weights_shape) > hint(self.tiles) * _MOST_WEIGHTS

    @property
    def products(self) -> int:
        """Returns the MACs of all matrix products."""
        it = self.convolution
        return hint(self.tiles) * self.algorithm.matrices * it.inputs * it.outputs

    @property
    def transformed_bytes(self) -> int:
        """Returns the bytes of the matrices that the transforms write and read."""
        it = self.convolution
        return 4 * hint(self.tiles) * self.algorithm.matrices * (it.inputs + it.outputs)

    @property
    def weight_bytes(self) -> int:
        """Returns the bytes of weights that are read; in a model, they usually come from memory."""
        return 4 * math.prod(self.weights_shape)

    def milliseconds(self, direct: float, threads: int) -> float:
        known = calibration(ConvolutionCalibration)
        share = self.products / self.convolution.products
        transforms = self.transformed_bytes / known.transformed_bytes
        weights = self.weight_bytes / known.weight_bytes
        return direct * share + (transforms + weights) / threads

    @property
    def packing(self) -> Hashable:
        return ("winograd", self.name, self.unit.panel)

    def pack(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        along_axis = self.algorithm.weight_transform()
        transform = np.kron(along_axis, along_axis)  # from a window to the points of a tile
        together = _PACKED_TOGETHER // transform.size
        matrices, panels, inputs, columns = self.weights_shape
        points = aligned_empty((matrices, panels, inputs * columns), np.float32)
        for number in range(panels):
            panel = panel_of(weights, number, columns).reshape(-1, inputs * columns)
            for first in range(0, inputs * columns, together):
                some = slice(first, first + together)
                points[:, number, some] = transform @ panel[:, some]
        return points.reshape(self.weights_shape)

    def code(self, threads: int) -> KernelCode:
        return self.code_for(FloatPixels(self.convolution.epilogue.bias), threads)

    def code_for(self, pixels: Pixels, threads: int) -> KernelCode:
        """Returns the code for a pixel format."""
        blocks = self.blocks(threads)
        define = partial(
            define_winograd,
            unit=self.unit,
            algorithm=self.algorithm,
            strips=strips_of(blocks.sizes, self.unit),
            pixels=pixels,
        )
        return KernelCode(define, words(self._parameters(blocks)))

    def _parameters(self, blocks: Blocks) -> WinogradParameters[Size]:
        convolution, (_, rows, columns) = self.convolution, self.grid
        return WinogradParameters(
            blocks=blocks.count,
            tiles=self.tiles,
            columns=columns,
            rows=rows,
            panels=self.panels,
            results=blocks.source.elements,
            block=blocks.elements,
            threads=blocks.threads,
            source=self._image(convolution.source, convolution.begins, blocks.source),
            result=self._image(convolution.result, (0, 0), blocks.result),
            lower=float_bits(convolution.epilogue.lower),
            upper=float_bits(convolution.epilogue.upper),
        )

    def _image(self, image: Image, begins: Pair, matrices: Matrices) -> ImageParameters[Size]:
        _, channels, height, width = image.shape
        strides, (top, left) = image.strides(self.unit.lanes), begins
        return ImageParameters(
            height=height,
            width=width,
            top=top,
            left=left,
            vectors=channels // self.unit.lanes,
            image=strides.image,
            vector=strides.vector,
            line=strides.line,
            pixel=strides.pixel,
            matrix=matrices.channels,
            tile=matrices.tile,
        )


def _cut(tiles: Size, most: int, threads: int) -> tuple[Size, int]:
    """Returns the number of blocks of at most `most` tiles, and the tiles of the largest block."""
    count = ceildiv(ceildiv(tiles, most), threads) * threads
    if isinstance(tiles, Dim) or isinstance(count, Dim):
        return count, most
    count = count if tiles >= threads * most else 1
    return count, -(-tiles // count)


def winograd_kernels(convolution: Convolution, unit: VectorUnit) -> Iterator[Winograd]:
    """Yields a kernel for each algorithm that supports the convolution; none if strides or layout
    do not fit.
    """
    fits = (
        {*convolution.strides, *convolution.dilation} == {1}
        and convolution.source.has_vectors(unit.lanes)
        and convolution.result.has_vectors(unit.lanes)
    )
    if fits:
        for algorithm in ALGORITHMS.values():
            if convolution.window == (algorithm.window, algorithm.window):
                yield Winograd(convolution, unit, algorithm)
