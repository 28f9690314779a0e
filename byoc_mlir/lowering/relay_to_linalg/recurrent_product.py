"""The products of recurrent layers: a few batch entries with all columns of a weight.

A step reads the whole weight, which is as large as a cache, for products with a vector or two. So
the entries of a tile share what is read, sums stay in registers, and the weight lies in panels of
16 columns, which are read from their beginning to their end. Every other step begins with the last
panels: a cache that is smaller than the weight still has them from the step before.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType, f32, f64
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.constant import Array, derived_array
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.lowering.pack_weights import panels
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.scalars import multiply_add

TILE_ROWS = 4
"""Batch entries that share what is read of the weight."""

_LANES = 16
"""Columns of a panel; a processor with shorter vectors takes several for them."""

_VECTORS = (f32, f64)
"""The types that are multiplied as vectors."""

_CHAINS = 4
"""Vectors that are summed at once, so that an addition need not wait for the one before."""

_ROWS = 4
"""Rows of the weight that are multiplied in one pass over the sums. Rows are often a power of two
apart: eight of them and the sums fall into one set of the cache, which has room for eight lines."""


def in_panels(b: LinalgBuilder, weight: SSAValue) -> SSAValue:
    """A weight `[directions, size, width]`, its columns in panels if it is a constant and vectors
    are what multiplies with it: `[directions, width / 16, size, 16]`."""
    constant = weight.owner
    if not isinstance(constant, ConstantOp):
        return weight
    type_ = constant.type
    if type_.element_type not in _VECTORS or not _fills_panels(type_.get_shape()[-1]):
        return weight
    array = constant.array

    def packed() -> Array:
        return np.stack([panels(matrix, _LANES) for matrix in array])

    return b.emit(
        ConstantOp.of("packed_weight", derived_array("recurrent_panels", [array], packed))
    )


def _fills_panels(columns: int) -> bool:
    return columns % _LANES == 0


@dataclass(frozen=True)
class Rows:
    """The batch entries of a tile: `count` from `first` on, at most `TILE_ROWS`."""

    direction: Index
    first: Index
    count: Index

    def each(self, k: Kernel, body: Callable[[tuple[Index, Index]], None]) -> None:
        """Writes a loop over them; the body gets direction and entry."""
        with k.loop(self.count) as row:
            body((self.direction, row + self.first))


def add_product(
    k: Kernel,
    step: Num,
    sums: Buffer,
    rows: Rows,
    data: Buffer,
    weight: Buffer,
    columns: tuple[int, int],
) -> None:
    """`sums[rows, columns] += data[rows] · weight[direction, :, columns]`.

    Args:
        k: where it is written.
        step: the number of the layer's step.
        sums: `[directions, batch, width]`.
        rows: of `sums` and `data`.
        data: `[directions, batch, size]`.
        weight: `[directions, size, width]`, or what `in_panels` makes of it.
        columns: the first, and the one after the last.
    """
    if sums.type not in _VECTORS or not all(map(_fills_panels, columns)):
        rows.each(k, lambda row: _add_one_row(k, sums, row, data, weight, columns))
    elif isinstance(rows.count, int):
        _Product(k, step, sums, rows, data, weight).write(rows.count, columns)
    else:
        product = _Product(k, step, sums, rows, data, weight)
        for count in range(1, TILE_ROWS + 1):
            with k.when(k.index(rows.count).equals(count)):
                product.write(count, columns)


def _add_one_row(
    k: Kernel,
    sums: Buffer,
    row: tuple[Index, Index],
    data: Buffer,
    weight: Buffer,
    columns: tuple[int, int],
) -> None:
    """As loops over elements, some rows of the weight at a time."""
    direction, _ = row
    begin, end = columns
    size = weight.shape[1]

    def block(first: Index, count: int) -> None:
        places = [k.index(first) + offset for offset in range(count)]
        factors = [data[(*row, place)] for place in places]
        with k.loop(end, start=begin) as j:
            total = sums[(*row, j)]
            for place, factor in zip(places, factors, strict=True):
                total = total + factor * weight[direction, place, j]
            sums[(*row, j)] = total

    whole = size - size % _ROWS
    if whole:
        with k.loop(whole, step=_ROWS) as first:
            block(first, _ROWS)
    if size % _ROWS:
        block(whole, size % _ROWS)


class _Product:
    """Tiles of some rows and some panels, whose sums are in registers."""

    def __init__(
        self, k: Kernel, step: Num, sums: Buffer, rows: Rows, data: Buffer, weight: Buffer
    ):
        self._k = k
        self._is_backward = (step % 2).equals(1)
        self._vector = VectorType(sums.type, [_LANES])
        self._sums, self._data, self._weight = (
            buffer.reshaped(buffer.size) for buffer in (sums, data, weight)
        )
        first_row = k.index(rows.direction) * sums.sizes[1] + rows.first
        self._width, self._size = operator.index(sums.sizes[-1]), operator.index(data.sizes[-1])
        self._first_sum, self._first_data = first_row * self._width, first_row * self._size
        self._first_weight = k.index(rows.direction) * (self._size * self._width)
        is_packed = len(weight.sizes) == 4
        self._panel = self._size * _LANES if is_packed else _LANES
        """Elements between panels of the weight."""
        self._step = _LANES if is_packed else self._width
        """Elements between the places of a sum in the weight."""

    def write(self, rows: int, columns: tuple[int, int]) -> None:
        """The products of so many rows with some columns."""
        first, last = (column // _LANES for column in columns)
        together = max(1, _CHAINS // rows)
        whole = last - (last - first) % together
        for start, end, count in ((first, whole, together), (whole, last, 1)):
            if start < end:
                with self._k.loop(end, start=start, step=count) as place:
                    mirrored = self._k.index(start + end - count) - place
                    panel = self._k.select(self._is_backward, mirrored, place)
                    self._tile(rows, [panel + offset for offset in range(count)])

    def _tile(self, rows: int, panels: Sequence[Num]) -> None:
        k = self._k
        places = [
            self._first_sum + row * self._width + panel * _LANES
            for row in range(rows)
            for panel in panels
        ]
        starts = [self._first_weight + panel * self._panel for panel in panels]

        def step(counter: Num, sums: Sums) -> Sums:
            weights = [self._load(self._weight, start + counter * self._step) for start in starts]
            factors = [
                self._broadcast(self._first_data + row * self._size + counter)
                for row in range(rows)
            ]
            return add_products(partial(multiply_add, k.emit), factors, weights, sums)

        totals = k.fold(self._size, [self._load(self._sums, place) for place in places], step)
        for place, total in zip(places, totals, strict=True):
            k.add(vector.StoreOp(total, self._sums.memref, k.positions(place)))

    def _load(self, buffer: Buffer, place: Num) -> SSAValue:
        return self._k.emit(vector.LoadOp(buffer.memref, self._k.positions(place), self._vector))

    def _broadcast(self, place: Num) -> SSAValue:
        return self._k.emit(vector.BroadcastOp(self._data[place].value, self._vector))
