"""Kernels of GEMMs with blockwise quantised weights of a few bits.

They read weights as ONNX stores them: the codes of a unit follow each other, and a byte holds the
codes of neighbouring elements. So weights are never copied. Instead, the data is put in the order
in which a vector of bytes gives the codes: first the elements of the low bits of all lanes, then
those of the next bits. Groups of units are distributed among threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FloatAttr,
    IntegerType,
    Signedness,
    VectorType,
    f32,
    i64,
)
from xdsl.ir import SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.dims import Size, floordiv
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.scalars import CONTRACT, REASSOCIATE, multiply_add

_PANEL = 16
"""Units that a thread claims at a time."""

_TILE_UNITS = 4
_REST_ROWS = (4, 2, 1)
_WIDE_LANES = 16
"""Lanes of vectors of which a processor has 32 registers."""

_UNROLLED_CHUNKS = 4
_UNPACKED_STEPS = 1024
_BYTE = IntegerType(8, Signedness.UNSIGNED)
_ADD = vector.CombiningKindAttr(vector.CombiningKindFlag.ADD)


@dataclass(frozen=True)
class BlockwiseSizes:
    """Sizes of a GEMM; each `block` of elements of a unit has a scale, and takes `bytes` bytes."""

    rows: Size
    units: int
    blocks: int
    bytes: int
    bits: int
    usual_rows: int
    """Number of rows for which code is optimised."""
    vector_lanes: int
    """Number of `f32` in a register."""

    @property
    def block(self) -> int:
        """Returns the number of elements of a block."""
        return self.bytes * self.codes

    @property
    def codes(self) -> int:
        """Returns the number of codes in a byte."""
        return 8 // self.bits

    @property
    def steps(self) -> int:
        return self.blocks * self.block

    @property
    def lanes(self) -> int:
        """Returns the number of bytes of a chunk, which are loaded at once."""
        return min(self.vector_lanes, self.bytes)

    @property
    def chunk(self) -> int:
        """Returns the number of elements of a chunk."""
        return self.lanes * self.codes

    @property
    def chunks(self) -> int:
        """Returns the number of chunks of a block."""
        return self.bytes // self.lanes

    @property
    def tile_rows(self) -> int:
        """Returns the rows of a tile of `ManyRows`, whose accumulators have to fit in the
        registers.
        """
        return 6 if self.vector_lanes == _WIDE_LANES else 3


@dataclass(frozen=True)
class Buffers:
    """Buffers of a kernel, all dense."""

    data: SSAValue
    """Data, `[rows, steps]`."""
    codes: SSAValue
    """Weights, `[units, blocks, bytes]`."""
    scales: SSAValue
    """Scales, `[units, blocks]`."""
    zeros: SSAValue
    """Zero points, of the shape of the scales, or `[1, 1]`."""
    output: SSAValue
    """Result, `[rows, units]`."""
    ordered: SSAValue
    """Memory for the data in the order of the codes, `[rows, steps]`."""


class BlockwiseWriter(ABC):
    """Base of the kernels: order of the data, and distribution of the units."""

    def __init__(
        self, code: LoopWriter, sizes: BlockwiseSizes, buffers: Buffers, *, one_zero: bool
    ):
        self.code = code
        self.sizes = sizes
        self.data, self.bytes, self.scales, self.zeros, self.output, self.ordered = map(
            code.flat,
            (
                *(buffers.data, buffers.codes, buffers.scales, buffers.zeros),
                *(buffers.output, buffers.ordered),
            ),
        )
        self.one_zero = one_zero
        self.numbers = VectorType(f32, [sizes.lanes])
        self.zero = code.emit(splat(0.0, self.numbers))

    def write(self) -> None:
        """Emits the kernel; units are computed on all threads if there is enough work."""
        sizes = self.sizes
        self.order_data()
        full = sizes.units - sizes.units % _TILE_UNITS
        work = sizes.usual_rows * sizes.units * sizes.steps / ASSUMED.block_products
        if work >= ASSUMED.parallel_cycles and full > _PANEL:
            with self.code.parallel([full], [_PANEL], cycles=work) as (first,):
                count = self.code.minimum(self.plus(full, self.times(first, -1)), _PANEL)
                self.panel(first, count, _TILE_UNITS)
        elif full:
            with self.code.loop(full, step=_PANEL) as loop:
                count = self.code.minimum(self.plus(full, self.times(loop.counter, -1)), _PANEL)
                self.panel(loop.counter, count, _TILE_UNITS)
        if full < sizes.units:
            self.panel(full, sizes.units - full, 1)

    @abstractmethod
    def order_data(self) -> None:
        """Emits the preparation of the data."""

    @abstractmethod
    def panel(self, first: Index, count: Index, tile: int) -> None:
        """Emits the computation of all rows of some units, `tile` units at a time."""

    def over_chunks(self, sums: Sums, added: Callable[[Index, Sums], Sums]) -> Sums:
        """Emits the chunks of a block; `added` adds the chunk of a number to some sums."""
        chunks = self.sizes.chunks
        if chunks > _UNROLLED_CHUNKS:
            with self.code.loop(chunks, sums) as loop:
                loop.carry(added(loop.counter, loop.carried))
            return loop.results
        for chunk in range(chunks):
            sums = added(chunk, sums)
        return sums

    def parts(self, at: Index) -> list[SSAValue]:
        """Emits the data of a chunk, the elements for the same bits of all bytes together."""
        sizes = self.sizes
        chunk = self.vector(self.data, at, VectorType(f32, [sizes.chunk]))
        if sizes.codes == 1:
            return [chunk]
        places = [range(place, sizes.chunk, sizes.codes) for place in range(sizes.codes)]
        masks = [DenseArrayBase.from_list(i64, lanes) for lanes in places]
        return [
            self.code.emit(vector.ShuffleOp(chunk, chunk, mask, result_type=self.numbers))
            for mask in masks
        ]

    def unpacked(self, at: Index) -> list[SSAValue]:
        """Emits the codes in a chunk of bytes as values, from the low bits on."""
        code, bits = self.code, self.sizes.bits
        packed = self.packed(at)
        return [
            code.emit(host.CodesOp(packed, offset, bits, self.numbers))
            for offset in range(0, 8, bits)
        ]

    def packed(self, at: Index) -> SSAValue:
        """Emits the load of a chunk of bytes."""
        return self.vector(self.bytes, at, VectorType(_BYTE, [self.sizes.lanes]))

    def vector(self, buffer: SSAValue, at: Index, type_: VectorType | None = None) -> SSAValue:
        """Emits the load of a vector."""
        return self.code.emit(vector.LoadOp(buffer, [self.code.index(at)], type_ or self.numbers))

    def store(self, value: SSAValue, buffer: SSAValue, at: Index) -> None:
        """Emits the store of a vector."""
        self.code.add(vector.StoreOp(value, buffer, [self.code.index(at)]))

    def repeated(self, value: SSAValue, type_: VectorType | None = None) -> SSAValue:
        """Emits the broadcast of a number to all lanes."""
        return self.code.emit(vector.BroadcastOp(value, type_ or self.numbers))

    def number(self, buffer: SSAValue, at: Index) -> SSAValue:
        """Emits the broadcast of one element to all lanes."""
        return self.repeated(self.code.load(buffer, at))

    def zero_point(self, at: Index) -> SSAValue:
        """Emits the broadcast of the zero point of block `at` of all blocks."""
        return self.number(self.zeros, 0 if self.one_zero else at)

    def added_product(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue) -> SSAValue:
        """Emits `lhs * rhs + total`."""
        return multiply_add(self.code.emit, lhs, rhs, total)

    def product(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits `lhs * rhs`."""
        return self.code.emit(arith.MulfOp(lhs, rhs, CONTRACT))

    def summed(self, value: SSAValue) -> SSAValue:
        """Emits the sum of a vector's lanes."""
        return self.code.emit(
            vector.ReductionOp.create(
                operands=[value],
                result_types=[f32],
                properties={"kind": _ADD, "fastmath": REASSOCIATE},
            )
        )

    def times(self, value: Index, factor: int) -> Index:
        """Emits `value * factor`."""
        return self.code.scale_index(value, factor)

    def plus(self, *values: Index) -> Index:
        """Emits the sum of indices."""
        total: Index = 0
        for value in values:
            total = self.code.add_index(total, value)
        return total


class FewRows(BlockwiseWriter):
    """Kernel for few rows.

    Each code is loaded once, and multiplied with all rows, in registers. The MACs of the bare codes
    are summed per block, and scaled afterwards. For a symbolic number of rows, the kernel computes
    one row after the other.
    """

    def __init__(
        self,
        code: LoopWriter,
        sizes: BlockwiseSizes,
        buffers: Buffers,
        starts: SSAValue,
        *,
        one_zero: bool,
    ):
        """Takes memory `[rows, blocks, lanes]` for the sums with which blocks start."""
        super().__init__(code, sizes, buffers, one_zero=one_zero)
        self.starts = code.flat(starts)
        self.total_type = self.numbers
        """Type of the sums of a unit and a row."""

    def order_data(self) -> None:
        """Emits the order of the data, and the sums that take the zero points into account."""
        code, sizes = self.code, self.sizes
        with code.loop(sizes.rows * sizes.blocks) as loop:
            first = self.times(loop.counter, sizes.block)

            def ordered(chunk: Index, totals: Sums) -> Sums:
                at = self.plus(first, self.times(chunk, sizes.chunk))
                (total,) = totals
                for place, part in enumerate(self.parts(at)):
                    self.store(part, self.ordered, self.plus(at, place * sizes.lanes))
                    total = code.emit(arith.AddfOp(total, part, CONTRACT))
                return [total]

            (total,) = self.over_chunks([self.zero], ordered)
            self.store(self.start(total), self.starts, self.times(loop.counter, sizes.lanes))

    def start(self, total: SSAValue) -> SSAValue:
        """Emits the sum of a block times the negative zero point, or minus one if blocks have their
        own.
        """
        factor = self.code.emit(splat(-1.0, self.total_type))
        if self.one_zero:
            zero = self.repeated(self.code.load(self.zeros, 0), self.total_type)
            factor = self.product(factor, zero)
        return self.product(factor, total)

    def panel(self, first: Index, count: Index, tile: int) -> None:
        rows, code = self.sizes.rows, self.code
        tile = min(tile, 2) if isinstance(rows, int) and rows > 1 else tile
        with code.loop(count, step=tile) as group:
            units = [self.plus(first, group.counter, unit) for unit in range(tile)]
            if isinstance(rows, int):
                self._tile(units, range(rows))
                return
            with code.loop(rows) as loop:
                self._tile(units, [loop.counter])

    def _tile(self, units: Sequence[Index], rows: Sequence[Index]) -> None:
        """Emits the computation of some rows of some units."""
        code, blocks = self.code, self.sizes.blocks
        starts = [self.times(unit, blocks) for unit in units]
        row_starts = [self.times(row, blocks) for row in rows]
        nothing = code.emit(splat(0.0, self.total_type))
        with code.loop(blocks, [nothing] * (len(rows) * len(units))) as loop:
            block = loop.counter
            numbers = [self.plus(start, block) for start in starts]
            row_blocks = [self.plus(start, block) for start in row_starts]
            scales = [self.scale(number, row) for number in numbers for row in row_blocks]
            sums = self.block(numbers, row_blocks)
            loop.carry(list(map(self.added_product, scales, sums, loop.carried)))
        places = [
            self.plus(self.times(row, self.sizes.units), unit) for unit in units for row in rows
        ]
        for place, total in zip(places, loop.results, strict=True):
            code.store(self.summed(total), self.output, place)

    def scale(self, unit: Index, row: Index) -> SSAValue:
        """Emits the scale of a block of a unit, for a row's block."""
        del row
        return self.number(self.scales, unit)

    def block(self, units: Sequence[Index], rows: Sequence[Index]) -> Sums:
        """Emits the dot products of a block of each unit with each row, less the zero points.

        Args:
            units: numbers of the units' blocks among all blocks.
            rows: numbers of the rows' blocks.
        """
        sizes, lanes = self.sizes, self.sizes.lanes
        starts = [self.vector(self.starts, self.times(row, lanes)) for row in rows]
        sums = [start for _ in units for start in starts]
        if not self.one_zero:
            zeros = [self.zero_point(unit) for unit in units for _ in rows]
            sums = list(map(self.product, zeros, sums))
        code_starts = [self.times(unit, sizes.bytes) for unit in units]
        data_starts = [self.times(row, sizes.block) for row in rows]

        def added(chunk: Index, sums: Sums) -> Sums:
            at, data_at = self.times(chunk, lanes), self.times(chunk, sizes.chunk)
            codes = [self.unpacked(self.plus(start, at)) for start in code_starts]
            for place in range(sizes.codes):
                offset = self.plus(data_at, place * lanes)
                numbers = [
                    self.vector(self.ordered, self.plus(start, offset)) for start in data_starts
                ]
                pairs = [(number, one[place]) for one in codes for number in numbers]
                sums = [
                    self.added_product(*pair, total)
                    for pair, total in zip(pairs, sums, strict=True)
                ]
            return sums

        return self.over_chunks(sums, added)


class ManyRows(BlockwiseWriter):
    """Kernel for many rows.

    It dequantises some hundred steps of a panel to the stack, and multiplies tiles of rows with
    them.
    """

    def order_data(self) -> None:
        """Emits the order of the data."""
        code, sizes = self.code, self.sizes
        chunks = sizes.steps // sizes.chunk
        with code.parallel([sizes.rows], cycles=sizes.usual_rows * sizes.steps) as (row,):
            start = self.times(row, sizes.steps)
            with code.loop(chunks) as loop:
                at = self.plus(start, self.times(loop.counter, sizes.chunk))
                for place, part in enumerate(self.parts(at)):
                    self.store(part, self.ordered, self.plus(at, place * sizes.lanes))

    def panel(self, first: Index, count: Index, tile: int) -> None:
        code, sizes = self.code, self.sizes
        most = min(sizes.blocks, max(1, _UNPACKED_STEPS // sizes.block))
        weights = code.emit(memref.AllocaOp.get(f32, 64, [most * sizes.block * _PANEL]))
        with code.loop(sizes.blocks, step=most) as loop:
            blocks: Index = most
            if sizes.blocks % most:
                blocks = code.minimum(self.plus(sizes.blocks, self.times(loop.counter, -1)), most)
            with code.loop(count) as unit, code.loop(blocks) as block:
                target = self.plus(self.times(unit.counter, most), block.counter)
                unit_start = self.times(self.plus(first, unit.counter), sizes.blocks)
                number = self.plus(unit_start, loop.counter, block.counter)
                self._unpack(number, weights, self.times(target, sizes.block))
            part = _Part(weights, loop.counter, blocks, most * sizes.block, first, count, tile)
            full = floordiv(sizes.rows, sizes.tile_rows) * sizes.tile_rows
            with code.loop(full, step=sizes.tile_rows) as rows:
                self._rows(part, rows.counter, sizes.tile_rows)
            self._rest(part, full, sizes.rows - full)

    def _rest(self, part: _Part, first: Size, rows: Size) -> None:
        """Emits the rows after the whole tiles; for a symbolic number, a tile for each bit of the
        number.
        """
        if isinstance(rows, int):
            if rows:
                self._rows(part, first, rows)
            return
        code, number = self.code, self.code.index(rows)
        before: Index = first
        for bit in _REST_ROWS:
            has_tile = code.bits(number, bit)
            with code.if_positive(has_tile):
                self._rows(part, before, bit)
            before = self.plus(before, has_tile)

    def _unpack(self, block: Index, target: SSAValue, first: Index) -> None:
        """Emits the dequantisation of block `block` of all blocks to `target`, from `first` on."""
        sizes = self.sizes
        scale, zero = self.number(self.scales, block), self.zero_point(block)
        start = self.times(block, sizes.bytes)

        def unpacked(chunk: Index, sums: Sums) -> Sums:
            codes = self.unpacked(self.plus(start, self.times(chunk, sizes.lanes)))
            at = self.plus(first, self.times(chunk, sizes.chunk))
            for place, value in enumerate(codes):
                shifted = self.code.emit(arith.SubfOp(value, zero, CONTRACT))
                weight = self.product(shifted, scale)
                self.store(weight, target, self.plus(at, place * sizes.lanes))
            return sums

        self.over_chunks([], unpacked)

    def _rows(self, part: _Part, first: Index, rows: int) -> None:
        """Emits the MACs of some rows with all units of `part`."""
        with self.code.loop(part.count, step=part.tile) as group:
            self._tile(part, range(rows), first, group.counter)

    def _tile(self, part: _Part, rows: range, first_row: Index, first_unit: Index) -> None:
        """Emits the MACs of some rows with `part.tile` units, and adds them to the output."""
        code, sizes = self.code, self.sizes
        first_step = self.times(part.first, sizes.block)
        data = [
            self.plus(self.times(self.plus(first_row, row), sizes.steps), first_step)
            for row in rows
        ]
        weights = [
            self.times(self.plus(first_unit, unit), part.stride) for unit in range(part.tile)
        ]
        steps = self.times(part.blocks, sizes.block)
        with code.loop(steps, [self.zero] * (len(rows) * part.tile), step=sizes.lanes) as loop:
            numbers = [self.vector(self.ordered, self.plus(at, loop.counter)) for at in data]
            totals: list[SSAValue] = []
            for unit, at in enumerate(weights):
                weight = self.vector(part.weights, self.plus(at, loop.counter))
                held = loop.carried[unit * len(rows) :]
                totals += [
                    self.added_product(number, weight, total)
                    for number, total in zip(numbers, held, strict=False)
                ]
            loop.carry(totals)
        fresh = code.is_zero(code.index(part.first))
        nothing = code.emit(arith.ConstantOp(FloatAttr(0.0, f32)))
        places = [
            self.plus(
                self.times(self.plus(first_row, row), sizes.units), part.unit, first_unit, unit
            )
            for unit in range(part.tile)
            for row in rows
        ]
        for place, total in zip(places, loop.results, strict=True):
            before = code.emit(arith.SelectOp(fresh, nothing, code.load(self.output, place)))
            sum_ = code.emit(arith.AddfOp(before, self.summed(total), CONTRACT))
            code.store(sum_, self.output, place)


@dataclass(frozen=True)
class _Part:
    """Range of dequantised blocks of some units."""

    weights: SSAValue
    """Weights, `[units, stride]`."""
    first: Index
    """Number of the first block."""
    blocks: Index
    stride: int
    """Distance of two units."""
    unit: Index
    """Number of the first unit."""
    count: Index
    """Number of units."""
    tile: int
    """Units of a tile."""
