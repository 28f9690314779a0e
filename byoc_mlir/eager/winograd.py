"""Convolutions of 3 by 3 by Winograd's algorithm F(2x2, 3x3): 16 products for what takes 36.

Four results come from a tile of 4 by 4 elements. Tiles are transformed, multiplied with transformed
weights, each of their 16 places a product of matrices, and the products transformed back.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv:1509.09308, section 4.1
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from byoc_mlir.eager.onednn import sgemm
from byoc_mlir.tensors import Array, aligned_empty

_STEP = 2
"""Results along each side of a tile."""
_SIDE = 4
"""Elements along each side of a tile: neighbours share two."""

_CHUNK = 1 << 21
"""Bytes of transformed tiles, and of products, that are made at a time."""


def arranged(weights: Array) -> Array:
    """Weights `[results, channels, 3, 3]`, transformed: `[4, 4, channels, results]`."""
    taps = np.ascontiguousarray(np.moveaxis(weights, (2, 3, 1, 0), (0, 1, 2, 3)))
    return np.stack(_weights_of_four([np.stack(_weights_of_four(row)) for row in taps]))


def _weights_of_four(taps: Sequence[Array]) -> Sequence[Array]:
    first, second, third = taps
    ends = (first + third) * np.float32(0.5)
    middle = second * np.float32(0.5)
    return first, ends + middle, ends - middle, third


def padded_size(count: int) -> int:
    """The elements along a side of the data for so many results."""
    return _tiles(count) * _STEP + _SIDE - _STEP


def convolve(data: Array, weights: Array, counts: tuple[int, int]) -> Array:
    """The results, `[batch, *counts, results]`.

    Args:
        data: `[batch, padded_size(rows), padded_size(columns), channels]`.
        weights: as `arranged` gives them.
        counts: rows and columns of the results.
    """
    rows, columns = map(_tiles, counts)
    found = aligned_empty((len(data), rows * _STEP, columns * _STEP, weights.shape[-1]), np.float32)
    rows_at_once = _rows_at_once(columns, weights)
    space = _Space.of(min(rows, rows_at_once), columns, weights)
    for image, first, last in _chunks(len(data), rows, rows_at_once):
        read = data[image, first * _STEP : (last - 1) * _STEP + _SIDE]
        result = found[image, first * _STEP : last * _STEP]
        space.of_rows(last - first).convolve(read, weights, result)
    return np.ascontiguousarray(found[:, : counts[0], : counts[1]])


def _tiles(count: int) -> int:
    return -(-count // _STEP)


def _rows_at_once(columns: int, weights: Array) -> int:
    """Rows of tiles."""
    row_bytes = _SIDE * _SIDE * columns * max(weights.shape[-2:]) * weights.itemsize
    return max(1, _CHUNK // row_bytes)


def _chunks(batch: int, rows: int, at_once: int) -> Iterator[tuple[int, int, int]]:
    """The image, the first row of tiles, and the one behind the last."""
    for image in range(batch):
        for first in range(0, rows, at_once):
            yield image, first, min(first + at_once, rows)


@dataclass(frozen=True)
class _Space:
    """Memory for some rows of tiles, in one piece: the C library would give small pieces back to
    the system, and get them again for each convolution.
    """

    lines: Array
    """`[4, rows, 2 columns + 2, channels]`: tiles, transformed along one side."""
    tiles: Array
    """`[4, 4, rows, columns, channels]`"""
    products: Array
    """`[4, 4, rows, columns, results]`"""
    back: Array
    """`[2, 4, rows, columns, results]`: products, transformed back along one side."""

    @classmethod
    def of(cls, rows: int, columns: int, weights: Array) -> _Space:
        """Memory for so many tiles."""
        *_, channels, results = weights.shape
        shapes = (
            (_SIDE, rows, columns * _STEP + _SIDE - _STEP, channels),
            (_SIDE, _SIDE, rows, columns, channels),
            (_SIDE, _SIDE, rows, columns, results),
            (_STEP, _SIDE, rows, columns, results),
        )
        ends = [*accumulate(map(math.prod, shapes))]
        whole = aligned_empty((ends[-1],), np.float32)
        parts = np.split(whole, ends[:-1])
        return cls(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))

    def of_rows(self, rows: int) -> _Space:
        """As much of it as fewer rows take."""
        if rows == self.lines.shape[1]:
            return self
        parts = (self.lines, self.tiles, self.products, self.back)
        return _Space(*(part[..., :rows, :, :] for part in parts))

    def convolve(self, data: Array, weights: Array, result: Array) -> None:
        """`[2 rows + 2, 2 columns + 2, channels]` to `[2 rows, 2 columns, results]`."""
        lines, places, _ = result.shape
        _transform([data[n : n + lines - 1 : _STEP] for n in range(_SIDE)], self.lines)
        for of_line, tiles in zip(self.lines, self.tiles, strict=True):
            _transform([of_line[:, n : n + places - 1 : _STEP] for n in range(_SIDE)], tiles)
        for place in np.ndindex(_SIDE, _SIDE):
            tiles, products = self.tiles[place], self.products[place]
            sgemm(_as_matrix(tiles), weights[place], _as_matrix(products))
        _transform_back(self.products, self.back)
        for line, of_line in enumerate(self.back):
            _transform_back(of_line, [result[line::_STEP, n::_STEP] for n in range(_STEP)])


def _as_matrix(array: Array) -> Array:
    """`[rows, columns, channels]` as a view of two dimensions."""
    return array.reshape(-1, array.shape[-1])


def _transform(read: Sequence[Array], into: Array) -> None:
    first, second, third, fourth = read
    np.subtract(first, third, out=into[0])
    np.add(second, third, out=into[1])
    np.subtract(third, second, out=into[2])
    np.subtract(second, fourth, out=into[3])


def _transform_back(products: Sequence[Array] | Array, into: Sequence[Array] | Array) -> None:
    first, second, third, fourth = products
    np.add(second, third, out=into[0])
    np.add(into[0], first, out=into[0])
    np.subtract(second, third, out=into[1])
    np.subtract(into[1], fourth, out=into[1])
