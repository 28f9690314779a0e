"""Kernel of few rows of data by blockwise quantised weights: the sums stay in registers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    BlockwiseWriter,
)
from byoc_mlir.lowering.relay_to_linalg.scalars import CONTRACT


class FewRows(BlockwiseWriter):
    """Kernel for few rows.

    Each code is loaded once, and multiplied with all rows, in registers. The MACs of the bare codes
    are summed per block, and scaled afterwards. For a symbolic number of rows, the kernel computes
    one row after the other. Further memory `[rows, blocks, lanes]` is for the sums with which
    blocks start.
    """

    NAME = "few"
    MEMORY = (f32, f32)

    @property
    def starts(self) -> SSAValue:
        """Returns the buffer of the sums with which blocks start."""
        return self.memory[1]

    def order_data(self, first: Index, count: Index) -> None:
        """Emits the order of the data, and the sums that take the zero points into account."""
        code, form = self.code, self.form
        with self.blocks_of(first, count) as block:
            start = self.times(block, form.block)

            def ordered(chunk: Index, totals: Sums) -> Sums:
                at = self.plus(start, self.times(chunk, form.chunk))
                (total,) = totals
                for place, part in enumerate(self.parts(at)):
                    self.store(part, self.ordered, self.plus(at, place * form.lanes))
                    total = code.emit(arith.AddfOp(total, part, CONTRACT))
                return [total]

            (total,) = self.over_chunks([self.zero], ordered)
            self.store(self.start(total), self.starts, self.times(block, form.lanes))

    def start(self, total: SSAValue) -> SSAValue:
        """Emits the sum of a block times the negative zero point, or minus one if blocks have their
        own.
        """
        factor = self.code.emit(splat(-1.0, self.numbers))
        if self.form.one_zero:
            zero = self.repeated(self.code.load(self.zeros, 0), self.numbers)
            factor = self.product(factor, zero)
        return self.product(factor, total)

    def panel(self, first: Index, count: Index, tile: int) -> None:
        rows, code = self.sizes.rows, self.code
        tile = min(tile, 2) if isinstance(rows, int) and rows > 1 else tile
        with code.loop(count, step=tile) as group:
            units = [self.plus(first, group.counter, unit) for unit in range(tile)]
            if isinstance(rows, int):
                self.tile(units, range(rows))
                return
            with code.loop(rows) as loop:
                self.tile(units, [loop.counter])

    def tile(self, units: Sequence[Index], rows: Sequence[Index]) -> None:
        """Emits the computation of some rows of some units."""
        code, blocks = self.code, self.sizes.blocks
        starts = [self.times(unit, blocks) for unit in units]
        row_starts = [self.times(row, blocks) for row in rows]
        nothing = code.emit(splat(0.0, self.numbers))
        with code.loop(blocks, [nothing] * (len(rows) * len(units))) as loop:
            block = loop.counter
            numbers = [self.plus(start, block) for start in starts]
            row_blocks = [self.plus(start, block) for start in row_starts]
            scales = [self.number(self.scales, number) for number in numbers for _ in rows]
            self.prefetch_next(starts[0], block, len(units))
            sums = self._block(numbers, row_blocks)
            loop.carry(list(map(self.added_product, scales, sums, loop.carried)))
        places = [
            self.plus(self.times(row, self.sizes.units), unit) for unit in units for row in rows
        ]
        for place, total in zip(places, loop.results, strict=True):
            code.store(self.summed(total), self.output, place)

    def _block(self, units: Sequence[Index], rows: Sequence[Index]) -> Sums:
        """Emits the dot products of a block of each unit with each row, less the zero points.

        Args:
            units: numbers of the units' blocks among all blocks.
            rows: numbers of the rows' blocks.
        """
        form, lanes = self.form, self.form.lanes
        starts = [self.vector(self.starts, self.times(row, lanes)) for row in rows]
        sums = [start for _ in units for start in starts]
        if not self.form.one_zero:
            zeros = [self.zero_point(unit) for unit in units for _ in rows]
            sums = list(map(self.product, zeros, sums))
        code_starts = [self.times(unit, form.bytes) for unit in units]
        data_starts = [self.times(row, form.block) for row in rows]

        def added(chunk: Index, sums: Sums) -> Sums:
            at, data_at = self.times(chunk, lanes), self.times(chunk, form.chunk)
            codes = [self.unpacked(self.plus(start, at)) for start in code_starts]
            for place in range(form.codes):
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
