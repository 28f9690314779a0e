"""GEMMs of recurrent layers: a few batch entries times all columns of a weight.

A time step multiplies the whole weight, which is about as large as a cache, by one vector or a few.
So the entries of a tile share the loads of the weight, and sums stay in registers. The weight is
packed in panels of 16 columns, which are read sequentially. Every other step reads the panels in
reverse order: a cache that is smaller than the weight still holds the last panels.

A `bf16` weight with `f32` operands is packed in panels of pairs: two rows are interleaved. Each
pair is multiplied with two elements of the state, rounded to `bf16`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType, bf16, f32, f64, i32
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import Tensor, sizes_of, tensor_of, tensor_type
from byoc_mlir.dialects.relay.constant import Array, derived_array
from byoc_mlir.dialects.relay.recurrent import RecurrentOp
from byoc_mlir.dialects.x86vector import DotBF16Op
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.lowering.pack_weights import panels
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.scalars import multiply_add
from byoc_mlir.runtime.system.cpu import target_cpu

TILE_ROWS = 4
"""Batch entries that share the loads of the weight."""

_LANES = 16
"""Columns of a panel; a processor with shorter vectors uses several of them."""

_VECTORS = (f32, f64)
"""Element types that are multiplied as vectors."""

_PANELS = 4
"""Maximum number of panels in one pass: several streams get more memory bandwidth, and independent
sums hide the latency of additions."""

_PAIR = 2

_ROWS = 4
"""Rows of the weight in one pass over the sums. The distance of rows is often a power of two: eight
rows and the sums would share one set of the cache, which has eight ways."""


Row: TypeAlias = tuple[Index, ...]
"""Indices of a row of a buffer, without the last one."""


def in_panels(b: LinalgBuilder, op: RecurrentOp) -> SSAValue:
    """Returns the weight `[directions, size, width]` of a layer, packed if possible.

    A constant that is multiplied as vectors is packed in panels `[directions, width / 16, size,
    16]`, or for pairs, `[directions, width / 16, size / 2, 32]`.
    """
    constant = op.weight.owner
    if not isinstance(constant, ConstantOp):
        return op.weight
    type_ = constant.type
    is_paired = meets_pairs(op)
    is_multiplied = is_paired or type_.element_type in _VECTORS
    if not is_multiplied or not fills_panels(type_.get_shape()[-1]):
        return op.weight
    array, pack = constant.array, _pair_panels if is_paired else _panels
    packed = derived_array(pack.__name__, [array], lambda: np.stack([pack(one) for one in array]))
    return b.emit(ConstantOp.of("packed_weight", packed))


def _panels(matrix: Array) -> Array:
    return panels(matrix, _LANES)


def _pair_panels(matrix: Array) -> Array:
    """Packs a matrix in panels, with the elements of two rows interleaved.

    The number of rows is even, since three or four times as many columns fill whole panels.
    """
    rows = panels(matrix, _LANES).reshape(-1, len(matrix) // _PAIR, _PAIR, _LANES)
    return rows.swapaxes(2, 3).reshape(len(rows), -1, _PAIR * _LANES)


def meets_pairs(op: RecurrentOp) -> bool:
    """True if the code multiplies pairs of `bf16`: only the weight, a constant in panels, is
    `bf16`.
    """
    weight, data = tensor_type(op.weight), tensor_type(op.data)
    is_rounded = weight.element_type == bf16 and data.element_type == f32
    is_constant = isinstance(op.weight.owner, ConstantOp)
    return is_rounded and is_constant and fills_panels(operator.index(sizes_of(op.weight)[-1]))


class Met:
    """Operand that is multiplied with the weight: a state, or its copy rounded to the weight's
    type.
    """

    def __init__(self, op: RecurrentOp):
        """Allocates the copy if `op` multiplies pairs."""
        self._rounds = meets_pairs(op)
        copy = tensor_of(bf16, sizes_of(op.operands[-1]))
        self.scratch: list[Tensor] = [copy] if self._rounds else []
        """Scratch memory of the copy, after the kernel's other scratch memory."""

    def take(self, k: Kernel, row: Row, state: Buffer) -> None:
        """Emits the rounding of a row of the state, if there is a copy."""
        if self._rounds:
            with k.loop(state.sizes[-1]) as j:
                k.scratch[-1][(*row, j)] = state[(*row, j)]

    def buffer(self, k: Kernel, state: Buffer) -> Buffer:
        """Returns the buffer with the operand, for a state on which `take` was called."""
        return k.scratch[-1] if self._rounds else state


def fills_panels(columns: int) -> bool:
    """True if this number of columns is a multiple of a panel's."""
    return columns % _LANES == 0


@dataclass(frozen=True)
class BatchRows:
    """Batch entries of a tile: `count` from `first` on, at most `TILE_ROWS`."""

    direction: Index
    first: Index
    count: Index

    def each(self, k: Kernel, body: Callable[[tuple[Index, Index]], None]) -> None:
        """Emits a loop over the entries; the body gets direction and entry."""
        with k.loop(self.count) as row:
            body((self.direction, row + self.first))


def add_product(
    k: Kernel,
    step: Num,
    sums: Buffer,
    rows: BatchRows,
    data: Buffer,
    weight: Buffer,
    columns: tuple[int, int],
) -> None:
    """Emits `sums[rows, columns] += data[rows] · weight[direction, :, columns]`.

    Args:
        k: builder of the kernel.
        step: number of the time step.
        sums: buffer `[directions, batch, width]`.
        rows: rows of `sums` and `data`.
        data: buffer `[directions, batch, size]`, or the operand of `Met`.
        weight: buffer `[directions, size, width]`, or the panels of `in_panels`.
        columns: the first column, and the column after the last one.
    """
    can_be_vectors = sums.type in _VECTORS and weight.type == data.type
    if not can_be_vectors or not all(map(fills_panels, columns)):
        rows.each(k, lambda row: _add_one_row(k, sums, row, data, weight, columns))
        return
    kind = _Product if data.type == sums.type else _PairProduct
    product = kind(k, step, sums, rows, data, weight)
    if isinstance(rows.count, int):
        product.write(rows.count, columns)
    else:
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
    """Emits scalar loops that add the products of one row; several rows of the weight are processed
    at a time.
    """
    direction, _ = row
    begin, end = columns
    size = weight.shape[1]

    def block(first: Index, count: int) -> None:
        places = [k.index(first) + offset for offset in range(count)]
        factors = [data[(*row, place)] for place in places]
        with k.loop(end, start=begin) as j:
            total = sums[(*row, j)]
            for place, factor in zip(places, factors, strict=True):
                total = total + factor * weight[direction, place, j].to(total.type)
            sums[(*row, j)] = total

    whole = size - size % _ROWS
    if whole:
        with k.loop(whole, step=_ROWS) as first:
            block(first, _ROWS)
    if size % _ROWS:
        block(whole, size % _ROWS)


class _Product:
    """Vectorised GEMM in tiles of several rows and panels, whose sums are in registers."""

    def __init__(
        self, k: Kernel, step: Num, sums: Buffer, rows: BatchRows, data: Buffer, weight: Buffer
    ):
        self._k = k
        self._is_backward = (step % 2).equals(1)
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
        """Elements between successive terms of a sum in the weight."""
        self._steps = self._size

    def write(self, rows: int, columns: tuple[int, int]) -> None:
        """Emits the GEMM of `rows` rows with a range of columns."""
        first, last = (column // _LANES for column in columns)
        together = self._panels_of(rows)
        whole = last - (last - first) % together
        for start, end, count in ((first, whole, together), (whole, last, 1)):
            if start < end:
                with self._k.loop(end, start=start, step=count) as place:
                    mirrored = self._k.index(start + end - count) - place
                    panel = self._k.select(self._is_backward, mirrored, place)
                    self._tile(rows, [panel + offset for offset in range(count)])

    def _panels_of(self, rows: int) -> int:
        """Returns the number of panels in one pass, a power of two: half of the registers are for
        sums, the rest for operands.
        """
        unit = VectorUnit.of(target_cpu().features)
        vectors = _LANES // unit.lanes * (2 if self._sums.type == f64 else 1)
        most = min(_PANELS, unit.registers // 2 // (vectors * rows))
        return 1 << max(most, 1).bit_length() - 1

    def _tile(self, rows: int, panels: Sequence[Num]) -> None:
        k = self._k
        places = [
            self._first_sum + row * self._width + panel * _LANES
            for row in range(rows)
            for panel in panels
        ]
        starts = [self._first_weight + panel * self._panel for panel in panels]

        def step(counter: Num, sums: Sums) -> Sums:
            weights = [self._weights(start + counter * self._step) for start in starts]
            factors = [self._factor(row, counter) for row in range(rows)]
            return add_products(self._multiply_add, factors, weights, sums)

        first = [_vector(k, self._sums, place, _LANES) for place in places]
        totals = k.fold(self._steps, first, step)
        for place, total in zip(places, totals, strict=True):
            k.add(vector.StoreOp(total, self._sums.memref, k.positions(place)))

    def _weights(self, place: Num) -> SSAValue:
        return _vector(self._k, self._weight, place, _LANES)

    def _factor(self, row: int, counter: Num) -> SSAValue:
        """Emits the broadcast of the row's element that is multiplied with a step's weights."""
        number = self._data[self._first_data + row * self._size + counter]
        return self._k.emit(vector.BroadcastOp(number.value, VectorType(number.type, [_LANES])))

    def _multiply_add(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue) -> SSAValue:
        return multiply_add(self._k.emit, lhs, rhs, total)


class _PairProduct(_Product):
    """GEMM with pairs of `bf16`, two rows of the weight at a time."""

    def __init__(
        self, k: Kernel, step: Num, sums: Buffer, rows: BatchRows, data: Buffer, weight: Buffer
    ):
        super().__init__(k, step, sums, rows, data, weight)
        self._step, self._steps = _PAIR * _LANES, self._size // _PAIR

    def _weights(self, place: Num) -> SSAValue:
        return _vector(self._k, self._weight, place, _PAIR * _LANES)

    def _factor(self, row: int, counter: Num) -> SSAValue:
        place = self._first_data + row * self._size + counter * _PAIR
        pair, emit = _vector(self._k, self._data, place, _PAIR), self._k.emit
        word = emit(vector.ExtractOp(emit(vector.BitcastOp(pair, VectorType(i32, [1]))), [0], i32))
        words = emit(vector.BroadcastOp(word, VectorType(i32, [_LANES])))
        return emit(vector.BitcastOp(words, VectorType(bf16, [_PAIR * _LANES])))

    def _multiply_add(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue) -> SSAValue:
        return self._k.emit(DotBF16Op(total, lhs, rhs))


def _vector(k: Kernel, buffer: Buffer, place: Num, lanes: int) -> SSAValue:
    """Emits the load of a vector from a flat buffer."""
    type_ = VectorType(buffer.type, [lanes])
    return k.emit(vector.LoadOp(buffer.memref, k.positions(place), type_))
