"""Kernel of GEMMs with blockwise quantised weights, for many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import PANEL, BlockwiseWriter
from byoc_mlir.lowering.relay_to_linalg.scalars import CONTRACT

_REST_ROWS = (8, 4, 2, 1)
_UNPACKED_STEPS = 1024
_WIDE_LANES = 16
"""Lanes of vectors of which a processor has 32 registers."""


class ManyRows(BlockwiseWriter):
    """Kernel for many rows.

    It dequantises some hundred steps of a panel to the stack, and multiplies tiles of rows with
    them.
    """

    NAME = "many"

    @property
    def steps(self) -> Index:
        """Emits the number of steps."""
        return self.times(self.sizes.blocks, self.form.block)

    def order_data(self, first: Index, count: Index) -> None:
        """Emits the order of the data."""
        code, form = self.code, self.form
        start, chunks = self.times(first, self.steps), form.block // form.chunk
        with code.loop(self.times(self.times(count, self.sizes.blocks), chunks)) as loop:
            at = self.plus(start, self.times(loop.counter, form.chunk))
            for place, part in enumerate(self.parts(at)):
                self.store(part, self.ordered, self.plus(at, place * form.lanes))

    def panel(self, first: Index, count: Index, tile: int) -> None:
        code, form, sizes = self.code, self.form, self.sizes
        most = max(1, _UNPACKED_STEPS // form.block)
        memory = self.unpacked_memory(most)
        whole = self.times(code.quotient(sizes.rows, self.tile_rows), self.tile_rows)
        with code.loop(sizes.blocks, step=most) as loop:
            blocks = code.minimum(self.plus(sizes.blocks, self.times(loop.counter, -1)), most)
            part = BlockRange(memory, loop.counter, blocks, most * form.block, first, count, tile)
            self.unpack(part)
            with code.loop(whole, step=self.tile_rows) as rows:
                self.multiply(part, rows.counter, self.tile_rows)
            self._rest(part, whole)

    @property
    def tile_rows(self) -> int:
        """Returns the rows of a tile, whose accumulators have to fit in the registers."""
        return 6 if self.form.vector_lanes == _WIDE_LANES else 3

    def unpacked_memory(self, blocks: int) -> Sequence[SSAValue]:
        """Emits memory on the stack for the unpacked weights of some blocks of a panel."""
        shape = [blocks * self.form.block * PANEL]
        return [self.code.emit(memref.AllocaOp.get(f32, 64, shape))]

    def unpack(self, part: BlockRange) -> None:
        """Emits the dequantisation of the weights of `part`."""
        code, form, (weights,) = self.code, self.form, part.memory
        with code.loop(part.count) as unit, code.loop(part.blocks) as block:
            unit_start = self.times(self.plus(part.unit, unit.counter), self.sizes.blocks)
            number = self.plus(unit_start, part.first, block.counter)
            target = self.times(unit.counter, part.stride)
            target = self.plus(target, self.times(block.counter, form.block))
            self._unpack(number, weights, target)

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

    def _unpack(self, block: Index, target: SSAValue, first: Index) -> None:
        """Emits the dequantisation of block `block` of all blocks to `target`, from `first` on."""
        form = self.form
        scale, zero = self.number(self.scales, block), self.zero_point(block)
        start = self.times(block, form.bytes)

        def unpacked(chunk: Index, sums: Sums) -> Sums:
            codes = self.unpacked(self.plus(start, self.times(chunk, form.lanes)))
            at = self.plus(first, self.times(chunk, form.chunk))
            for place, value in enumerate(codes):
                shifted = self.code.emit(arith.SubfOp(value, zero, CONTRACT))
                weight = self.product(shifted, scale)
                self.store(weight, target, self.plus(at, place * form.lanes))
            return sums

        self.over_chunks([], unpacked)

    def multiply(self, part: BlockRange, first: Index, rows: int) -> None:
        """Emits the MACs of some rows with all units of `part`."""
        with self.code.loop(part.count, step=part.tile) as group:
            self._tile(part, range(rows), first, group.counter)

    def _tile(self, part: BlockRange, rows: range, first_row: Index, first_unit: Index) -> None:
        """Emits the MACs of some rows with `part.tile` units, and adds them to the output."""
        code, form = self.code, self.form
        first_step, distance = self.times(part.first, form.block), self.steps
        data = [
            self.plus(self.times(self.plus(first_row, row), distance), first_step) for row in rows
        ]
        weights = [
            self.times(self.plus(first_unit, unit), part.stride) for unit in range(part.tile)
        ]
        steps = self.times(part.blocks, form.block)
        with code.loop(steps, [self.zero] * (len(rows) * part.tile), step=form.lanes) as loop:
            numbers = [self.vector(self.ordered, self.plus(at, loop.counter)) for at in data]
            totals: list[SSAValue] = []
            for unit, at in enumerate(weights):
                weight = self.vector(part.memory[0], self.plus(at, loop.counter))
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
                self.times(self.plus(first_row, row), self.sizes.units), part.unit, first_unit, unit
            )
            for unit in range(part.tile)
            for row in rows
        ]
        for place, total in zip(places, loop.results, strict=True):
            before = code.emit(arith.SelectOp(fresh, nothing, code.load(self.output, place)))
            sum_ = code.emit(arith.AddfOp(before, self.summed(total), CONTRACT))
            code.store(sum_, self.output, place)


@dataclass(frozen=True)
class BlockRange:
    """Range of dequantised blocks of some units."""

    memory: Sequence[SSAValue]
    """Unpacked weights; those of `ManyRows` are `[units, stride]`."""
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
