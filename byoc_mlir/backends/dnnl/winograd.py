"""3x3 convolutions by Winograd's algorithm: matrix products of tiles, for F(n x n, 3x3).

Tiles of n + 2 pixels along each axis, which overlap by two, become (n + 2)^2 matrices of tiles by
channels; each is multiplied by a matrix of channels by channels made of the weights; the results
become tiles of n x n pixels. F(4x4, 3x3) has 36 multiplications for each pair of channels where
the direct algorithm has 144. The code is in `codegen/winograd_*.py`.

Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, https://arxiv.org/abs/1509.09308
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.polynomial import polynomial
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.descriptions import LayoutOf
from byoc_mlir.backends.dnnl.dialect import ConvolutionOp
from byoc_mlir.backends.dnnl.epilogue import Epilogue, epilogue
from byoc_mlir.backends.dnnl.own_layouts import (
    CHANNEL_VECTORS,
    CHANNELS_LAST,
    LANES,
    PANEL,
    panel_of,
    strides_of,
)
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.dialects.relay.constant import derived_array

_FEWEST_TILES, _MOST_TILES = 16, 64
"""The tiles that are handled together: how often weights are used that were read once."""

_WEIGHTS_TO_ROWS = 2
"""The matrices of the weights are about that much larger than those of a block of tiles."""

_MOST_WEIGHTS = 1 << 20
"""Elements of the weights for each tile at most; 512 channels at 7² have 2.4 million in F(4x4)."""

_TILE_GAP = 16
"""Elements between the matrices' rows of one tile and of the next, so that the same row of
several tiles falls into different sets of a cache."""

_TRANSFORM_RATE = 1.5e7
"""Bytes that the transforms write and read per millisecond, on one thread."""

_WEIGHTS_RATE = 2e7
"""Bytes of weights per millisecond: in a model, other weights have taken their place in caches."""


@dataclass(frozen=True)
class Algorithm:
    """F(n x n, 3x3) by the interpolation points 0, p, -p for each of `points`, and infinity."""

    points: tuple[float, ...]

    @property
    def step(self) -> int:
        """The pixels that a tile computes along each axis."""
        return 2 * len(self.points)

    @property
    def tile(self) -> int:
        """The pixels that it reads."""
        return self.step + 2

    @property
    def matrices(self) -> int:
        """How many products there are."""
        return self.tile**2

    @property
    def name(self) -> str:
        """What `dnnl.convolution` calls it."""
        return f"f{self.step}x3"

    def polynomial(self, *, without: float | None = None) -> list[float]:
        """The product of all y - p^2, or of all but one: the factors of 1, y, y^2, ..."""
        roots = [point**2 for point in self.points if point != without]
        return [float(factor) for factor in polynomial.polyfromroots(roots)]

    def weight_transform(self) -> NDArray[np.float64]:
        """The matrix `[tile, 3]` from a line of the window to the points."""
        rows = [[1 / self.polynomial()[0], 0, 0]]
        for point in self.points:
            others = polynomial.polyval(point**2, self.polynomial(without=point))
            scale = 1 / (2 * point**2 * float(others))
            rows += [[scale, sign * point * scale, point**2 * scale] for sign in (1, -1)]
        return np.array([*rows, [0, 0, 1]])


ALGORITHMS: Mapping[str, Algorithm] = {
    one.name: one for one in (Algorithm((1,)), Algorithm((1, 2)), Algorithm((1, 2, 0.5)))
}
"""By name."""


@dataclass(frozen=True)
class Matrices:
    """The memory of one block's matrices: for each tile, a row of each matrix."""

    matrices: int
    tiles: int
    channels: int

    @property
    def tile(self) -> int:
        """Elements from tile to tile."""
        return self.matrices * self.channels + _TILE_GAP

    @property
    def elements(self) -> int:
        """The elements of all."""
        return self.tiles * self.tile


@dataclass(frozen=True)
class Blocks:
    """How the tiles are shared by threads.

    Where there are enough, they are cut into blocks, which a thread handles from the first
    transform to the last, in matrices of its own. Otherwise all tiles are one block, of which each
    thread transforms some and multiplies by some of the weights.
    """

    count: int
    threads: int
    source: Matrices
    result: Matrices

    @property
    def elements(self) -> int:
        """The memory of one block."""
        return self.source.elements + self.result.elements

    @property
    def byte_size(self) -> int:
        """The memory of all that are handled at the same time."""
        return 4 * self.elements * min(self.count, self.threads)


@dataclass(frozen=True)
class Winograd:
    """A convolution by such an algorithm, in certain layouts."""

    op: ConvolutionOp
    algorithm: Algorithm
    source_layout: str
    result_layout: str
    epilogue: Epilogue

    @property
    def grid(self) -> tuple[int, int, int]:
        """The images, and the tiles of each along both axes."""
        batch, _, height, width = shape_of(self.op.output)
        step = self.algorithm.step
        return batch, -(-height // step), -(-width // step)

    @property
    def tiles(self) -> int:
        """All tiles of all images."""
        return math.prod(self.grid)

    @property
    def inputs(self) -> int:
        """The channels of the source."""
        return shape_of(self.op.weights)[1]

    @property
    def panels(self) -> int:
        """The columns of the weights, with zeros in the last where outputs end before it does."""
        return -(-shape_of(self.op.weights)[0] // PANEL)

    def blocks(self, threads: int) -> Blocks:
        """How that many threads share the tiles."""
        outputs, inputs = shape_of(self.op.weights)[:2]
        balanced = inputs * outputs // (inputs + outputs) // _WEIGHTS_TO_ROWS
        most = min(max(balanced, _FEWEST_TILES), _MOST_TILES)
        blocks = _multiple(-(-self.tiles // most), threads) if self.tiles >= threads * most else 1
        tiles, matrices = -(-self.tiles // blocks), self.algorithm.matrices
        source = Matrices(matrices, tiles, self.inputs)
        result = Matrices(matrices, tiles, self.panels * PANEL)
        return Blocks(blocks, threads, source, result)

    @property
    def weights_shape(self) -> tuple[int, ...]:
        """The matrices of the weights, each a panel of columns after the other."""
        return (self.algorithm.matrices, self.panels, self.inputs, PANEL)

    @property
    def is_heavy(self) -> bool:
        """Whether its weights are used so seldom that they cost more memory than they are worth."""
        return math.prod(self.weights_shape) > self.tiles * _MOST_WEIGHTS

    def milliseconds(self, direct: float, threads: int) -> float:
        """About what it takes on some threads, where the direct algorithm takes so much."""
        outputs, inputs, *window = shape_of(self.op.weights)
        batch, _, height, width = shape_of(self.op.output)
        products = self.tiles * self.algorithm.matrices
        share = products / (batch * height * width * math.prod(window))
        transformed = 4 * products * (inputs + outputs)
        weights = 4 * math.prod(self.weights_shape)
        beside = transformed / _TRANSFORM_RATE + weights / _WEIGHTS_RATE
        return direct * share + beside / threads

    def weights(self) -> Weight:
        """The transformed weights."""
        constant = self.op.weights.owner
        assert isinstance(constant, ConstantOp)
        source, algorithm = constant.weight, self.algorithm.name
        transformed = derived_array(
            ("winograd", algorithm), [source.data], lambda: self._transformed(source.data)
        )
        return Weight.of(f"{source.name}.{algorithm}", transformed)

    def _transformed(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        tile, transform = self.algorithm.tile, self.algorithm.weight_transform()
        points = np.empty((tile, tile, *self.weights_shape[1:]), np.float32)
        for number in range(self.panels):  # all at once takes several times their memory
            along_y = np.tensordot(transform, panel_of(weights, number), 1)
            points[:, :, number] = np.tensordot(transform, along_y, (1, 1)).swapaxes(0, 1)
        return points.reshape(self.weights_shape)

    def words(self, blocks: Blocks) -> list[int]:
        """What the generated code reads: see `codegen/winograd_table.py`."""
        _, rows, columns = self.grid
        return [
            *(blocks.count, self.tiles, columns, rows, self.panels),
            *(blocks.source.elements, blocks.elements, blocks.threads),
            *_image(self.op.arguments[0], self.source_layout, self.op.begins, blocks.source),
            *_image(self.op.output, self.result_layout, (0, 0), blocks.result),
            *self.epilogue.words,
        ]


def _multiple(value: int, of: int) -> int:
    """The least multiple that is not less."""
    return -(-value // of) * of


def _image(
    value: SSAValue, layout: str, begins: Sequence[int], matrices: Matrices
) -> tuple[int, ...]:
    _, channels, height, width = shape_of(value)
    strides, in_matrices = strides_of(value, layout), (matrices.channels, matrices.tile)
    return (height, width, *begins, channels // LANES, *astuple(strides), *in_matrices)


def candidates(op: ConvolutionOp, layout: LayoutOf) -> Iterator[Winograd]:
    """The convolution by each of the algorithms; none where that is not written."""
    source, result = op.arguments[0], op.output
    window = shape_of(op.weights)
    outputs, inputs = window[:2]
    known = (CHANNELS_LAST, CHANNEL_VECTORS)
    fits = (
        window[2:] == (3, 3)
        and {*ints(op.strides), *ints(op.dilation), op.groups.value.data} == {1}
        and isinstance(op.weights.owner, ConstantOp)
        and inputs % LANES == outputs % LANES == 0
        and layout(source) in known
        and layout(result) in known
    )
    added = epilogue(op, layout) if fits else None
    if added is not None:
        for algorithm in ALGORITHMS.values():
            yield Winograd(op, algorithm, layout(source), layout(result), added)


def planned(op: ConvolutionOp, layout: LayoutOf) -> Winograd | None:
    """The convolution by the algorithm that it names; `None` for one of the library's."""
    found = candidates(op, layout)
    return next((one for one in found if one.algorithm.name == op.algorithm.data), None)
