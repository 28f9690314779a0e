"""Kernel of GEMMs with blockwise quantised weights, for many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, llvm, memref, vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, f32, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    GROUP,
    PANEL,
    BlockwiseWriter,
)
from byoc_mlir.lowering.relay_to_linalg.scalars import CONTRACT

ACCUMULATORS = 12
"""Accumulators of a tile, for 16 registers."""

_REST_ROWS = (8, 4, 2, 1)
_UNROLLED_STEPS = 4


class ManyRows(BlockwiseWriter):
    """Kernel for many rows.

    It dequantises some hundred steps of a panel, and multiplies tiles of rows with them. Lanes are
    units. The data of a tile is one stream `[steps, tile_rows]`: rows whose distance is a multiple
    of 4 KB would meet in the same sets of L1. On the stack are weights `[steps, PANEL]`, and scales
    and zero points `[blocks, PANEL]`. A panel that is not full repeats the last unit.
    """

    NAME = "many"
    TILE_UNITS = PANEL
    UNPACKED_STEPS: ClassVar[int] = 512
    """Steps that are unpacked at a time, unless a block has more."""
    UNPACKED: ClassVar[Attribute] = f32
    """Element of the unpacked weights."""

    @property
    def vectors(self) -> range:
        """Returns the numbers of the vectors of units in a panel."""
        return range(PANEL // self.unit_lanes)

    @property
    def floats(self) -> VectorType:
        """Returns the type of a number for each unit of a vector."""
        return VectorType(f32, [self.unit_lanes])

    @property
    def words(self) -> VectorType:
        """Returns the type of a word for each unit of a vector."""
        return VectorType(i32, [self.unit_lanes])

    def order_data(self, first: Index, count: Index) -> None:
        """Emits the order of the data: the elements of a tile's rows for a step are neighbours."""
        tile = self.tile_rows
        whole = self.times(self.code.quotient(count, tile), tile)
        with self.code.loop(whole, step=tile) as loop:
            self._order(self.plus(first, loop.counter), tile)
        with self.code.loop(count, start=self.code.index(whole)) as loop:
            self._order(self.plus(first, loop.counter), 1)

    def _order(self, first: Index, rows: int) -> None:
        """Emits the order of the data of some rows of a tile."""
        code, steps = self.code, self.times(self.sizes.blocks, self.form.block)
        starts = [self.times(self.plus(first, row), steps) for row in range(rows)]
        target = self.place(first)
        with code.loop(steps) as step:
            at = self.plus(target, self.times(step.counter, self.tile_rows))
            for row, start in enumerate(starts):
                value = code.load(self.data, self.plus(start, step.counter))
                code.store(value, self.ordered, self.plus(at, row))

    def place(self, row: Index) -> Index:
        """Emits the offset of the first element of a row in the ordered data."""
        steps = self.times(self.sizes.blocks, self.form.block)
        tile = self.times(self.code.quotient(row, self.tile_rows), self.tile_rows)
        return self.plus(self.times(tile, steps), row, self.times(tile, -1))

    def panel(self, first: Index, count: Index, tile: int) -> None:
        code, form, sizes = self.code, self.form, self.sizes
        most = max(1, self.UNPACKED_STEPS // form.block)
        memory = [
            code.emit(memref.AllocaOp.get(type_, 64, [most * size])) for type_, size in self.held()
        ]
        tiled = self.times(code.quotient(sizes.rows, self.tile_rows), self.tile_rows)
        with code.loop(sizes.blocks, step=most) as loop:
            blocks = code.minimum(self.plus(sizes.blocks, self.times(loop.counter, -1)), most)
            part = BlockRange(memory, loop.counter, blocks, first, count, tile == PANEL)
            self._unpack(part)
            with code.loop(tiled, step=self.tile_rows) as rows:
                self.multiply(part, rows.counter, self.tile_rows)
            self._rest(part, tiled)

    @property
    def tile_rows(self) -> int:
        """Returns the rows of a tile, whose accumulators have to fit in the registers."""
        return ACCUMULATORS // len(self.vectors)

    def held(self) -> list[tuple[Attribute, int]]:
        """Returns the element and its number for a block of a panel, for each part of the memory on
        the stack.
        """
        factors = [(f32, PANEL)] * len(self.factors_in_blocks)
        return [(self.UNPACKED, self.form.block * PANEL), *factors]

    def _rest(self, part: BlockRange, first: Index) -> None:
        """Emits the rows after the whole tiles: a tile for each bit of their number."""
        code = self.code
        number = code.index(self.plus(self.sizes.rows, self.times(first, -1)))
        before = first
        for bit in _REST_ROWS:
            if bit >= self.tile_rows:
                continue
            has_tile = code.bits(number, bit)
            with code.if_positive(has_tile):
                self.multiply(part, before, bit)
            before = self.plus(before, has_tile)

    def _unpack(self, part: BlockRange) -> None:
        """Emits the unpacking of the weights of `part`."""
        code = self.code
        units = [self.plus(part.unit, unit) for unit in range(PANEL)]
        if not part.is_full:
            last = self.plus(self.sizes.units, -1)
            units = [code.minimum(unit, last) for unit in units]
        starts = [self.plus(self.times(unit, self.sizes.blocks), part.first) for unit in units]
        first = self.times(part.unit, self.sizes.blocks)
        with code.loop(part.blocks) as loop:
            self.prefetch_next(first, self.plus(part.first, loop.counter), PANEL)
            blocks = [self.plus(start, loop.counter) for start in starts]
            at = self.times(loop.counter, PANEL)
            for unit, block in enumerate(blocks):
                for source, target in zip(self.factors_in_blocks, part.memory[1:], strict=False):
                    code.store(code.load(source, block), target, self.plus(at, unit))
            for number in self.vectors:
                first = number * self.unit_lanes
                some = blocks[first : first + self.unit_lanes]
                self.unpack_codes(part, some, loop.counter, first)

    def unpack_codes(
        self, part: BlockRange, blocks: Sequence[Index], block: Index, unit: int
    ) -> None:
        """Emits the unpacking of a block of the units from `unit` on.

        Args:
            blocks: numbers of the units' blocks among all blocks.
            block: number of the block in `part`.
        """
        form, code = self.form, self.code
        scale, *zeros = self.factors_of(part, self.plus(self.times(block, PANEL), unit))
        zero = zeros[0] if zeros else self.repeated(code.load(self.zeros, 0), self.floats)
        first = self.plus(self.times(block, form.block * PANEL), unit)

        def unpacked(chunk: Index, sums: Sums) -> Sums:
            joined = self.joined(blocks, chunk)
            before = self.times(chunk, form.chunk)
            for group in range(0, form.lanes, GROUP):
                first_word = group // GROUP * self.unit_lanes
                lanes = range(first_word, first_word + self.unit_lanes)
                mask = DenseArrayBase.from_list(i64, lanes)
                words = code.emit(vector.ShuffleOp(joined, joined, mask, result_type=self.words))
                for number, value in enumerate(self.codes_in(words)):
                    byte, place = divmod(number, form.codes)
                    weight = self._dequantised(value, scale, zero)
                    step = self.plus(before, (group + byte) * form.codes + place)
                    self.store(weight, part.weights, self.plus(first, self.times(step, PANEL)))
            return sums

        self.over(form.chunks, [], unpacked, 1)

    def _dequantised(self, value: SSAValue, scale: SSAValue, zero: SSAValue) -> SSAValue:
        """Emits the weights that codes stand for."""
        number = self.code.emit(llvm.SIToFPOp(value, self.floats))
        return self.product(self.code.emit(arith.SubfOp(number, zero, CONTRACT)), scale)

    @property
    def factors_in_blocks(self) -> Sequence[SSAValue]:
        """Returns the scales, and the zero points unless all are equal."""
        return [self.scales] if self.form.one_zero else [self.scales, self.zeros]

    def factors_of(self, part: BlockRange, at: Index) -> list[SSAValue]:
        """Emits the loads of these factors for a vector of units."""
        count = len(self.factors_in_blocks)
        return [self.vector(one, at, self.floats) for one in part.memory[1 : 1 + count]]

    def joined(self, blocks: Sequence[Index], chunk: Index) -> SSAValue:
        """Emits a chunk of the codes of some units: the first words of all units, then the second
        ones, and so on.
        """
        form = self.form
        words = VectorType(i32, [form.lanes // GROUP])
        at = self.times(chunk, form.lanes)
        starts = [self.plus(self.times(block, form.bytes), at) for block in blocks]
        values = [self.code.emit(vector.BitcastOp(self.packed(start), words)) for start in starts]
        while len(values) > 1:
            half, type_ = len(values) // 2, values[0].type
            assert isinstance(type_, VectorType)
            (lanes,) = type_.get_shape()
            mask = [place for lane in range(lanes) for place in (lane, lanes + lane)]
            both, result = DenseArrayBase.from_list(i64, mask), VectorType(i32, [2 * lanes])
            values = [
                self.code.emit(vector.ShuffleOp(*pair, both, result_type=result))
                for pair in zip(values[:half], values[half:], strict=True)
            ]
        return values[0]

    def multiply(self, part: BlockRange, first: Index, rows: int) -> None:
        """Emits the MACs of some rows with all units of `part`."""
        code, form = self.code, self.form
        numbers = [self.plus(first, row) for row in range(rows)]
        data = self.plus(self.place(first), self.times(part.first, form.block * self.tile_rows))
        nothing = [code.emit(splat(0.0, self.floats))] * (rows * len(self.vectors))
        steps = self.times(part.blocks, form.block)
        with code.loop(steps, nothing, step=_UNROLLED_STEPS) as loop:
            sums: Sums = loop.carried
            for more in range(_UNROLLED_STEPS):
                step = self.plus(loop.counter, more)
                at = self.times(step, PANEL)
                weights = [
                    self.vector(part.weights, self.plus(at, number * self.unit_lanes), self.floats)
                    for number in self.vectors
                ]
                here = self.plus(data, self.times(step, self.tile_rows))
                elements = (
                    self.repeated(code.load(self.ordered, self.plus(here, row)), self.floats)
                    for row in range(rows)
                )
                sums = add_products(self.added_product, elements, weights, sums)
            loop.carry(sums)
        for row, number in enumerate(numbers):
            own = loop.results[row * len(self.vectors) :][: len(self.vectors)]
            self.add_to_output(own, part, number)

    def add_to_output(self, totals: Sums, part: BlockRange, row: Index) -> None:
        """Emits the addition of a row's sums to the output."""
        code = self.code
        fresh = code.is_zero(code.index(part.first))
        nothing = code.emit(splat(0.0, self.floats))
        for number, total in zip(self.vectors, totals, strict=True):
            before = number * self.unit_lanes
            start = self.plus(self.times(row, self.sizes.units), part.unit, before)
            if part.is_full:  # some processors are slow at masked stores
                held = self.vector(self.output, start, self.floats)
                held = code.emit(arith.SelectOp(fresh, nothing, held))
                self.store(code.emit(arith.AddfOp(held, total)), self.output, start)
                continue
            at, count = [code.index(start)], code.index(self.plus(part.count, -before))
            mask = code.emit(vector.CreateMaskOp([count], VectorType(i1, [self.unit_lanes])))
            held = code.emit(vector.MaskedLoadOp(self.output, at, mask, nothing, self.floats))
            held = code.emit(arith.SelectOp(fresh, nothing, held))
            sum_ = code.emit(arith.AddfOp(held, total))
            code.add(vector.MaskedStoreOp(self.output, at, mask, sum_))


@dataclass(frozen=True)
class BlockRange:
    """Range of unpacked blocks of some units."""

    memory: Sequence[SSAValue]
    """Memory on the stack, as in `ManyRows.held`."""
    first: Index
    """Number of the first block."""
    blocks: Index
    unit: Index
    """Number of the first unit."""
    count: Index
    """Number of units."""
    is_full: bool
    """True if there are `PANEL` units."""

    @property
    def weights(self) -> SSAValue:
        """Returns the unpacked weights."""
        return self.memory[0]
