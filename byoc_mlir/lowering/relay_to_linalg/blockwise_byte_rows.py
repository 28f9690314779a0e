"""Kernel of few rows that are rounded to bytes, by blockwise quantised weights."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, VectorType, f32, i8, i32, i64
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_bytes import BYTES_OF_CHUNK, RUN, RoundedRows
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    GROUP,
    BlockwiseForm,
)
from byoc_mlir.lowering.relay_to_linalg.blockwise_rows import FewRows

_AHEAD_BYTES = 4096
"""Distance of prefetches: at 20 GB a second, twice the time that memory takes to answer."""


def lanes_of_block(form: BlockwiseForm) -> int:
    """Returns the number of lanes in which `FewRowsOfBytes` sums a block."""
    return min(form.bytes, 2 * BYTES_OF_CHUNK) // GROUP


class FewRowsOfBytes(RoundedRows, FewRows):
    """Kernel for few rows of data that is rounded to bytes.

    A vector has two neighbouring chunks of a unit: of one block, or of two blocks if a block is a
    chunk. The data for the first codes of both chunks is followed by that for their next codes. If
    the number of such blocks is odd, the last one is in a vector whose upper half is zero. Units
    follow each other, so that codes and scales are two streams of memory.
    """

    NAME = "few_of_bytes"
    TILE_UNITS = 1

    @property
    def _bytes(self) -> VectorType:
        return VectorType(i8, [2 * self.form.lanes])

    @property
    def _sums(self) -> VectorType:
        return VectorType(i32, [2 * self.form.lanes // GROUP])

    @property
    def _totals(self) -> VectorType:
        return VectorType(f32, [2 * self.form.lanes // GROUP])

    @property
    def _blocks(self) -> int:
        """Returns the number of blocks of a vector."""
        return 2 if self.form.chunks == 1 else 1

    @property
    def shares(self) -> int:
        return lanes_of_block(self.form)

    def keep(self, number: SSAValue, buffer: SSAValue, block: Index) -> None:
        lanes = VectorType(f32, [self.shares])
        self.store(self.repeated(number, lanes), buffer, self.times(block, self.shares))

    def ordered_place(self, block: Index, chunk: Index, code: int) -> Index:
        lanes, writer = self.form.lanes, self.code
        begin = self.plus(self.times(block, self.form.block), self.times(chunk, self.form.chunk))
        if self._blocks == 1:
            number, stride = chunk, 2 * lanes
        else:
            number = self._block_of_unit(block)
            stride = self.plus(lanes, self.times(self._is_paired(number), lanes))
        # the second of two chunks begins right after the first vector of the first one
        back = self.times(writer.remainder(number, 2), lanes - self.form.chunk)
        return self.plus(begin, back, self.times(stride, code))

    def _block_of_unit(self, block: Index) -> Index:
        number, blocks = self.code.index(block), self.code.index(self.sizes.blocks)
        return self.code.emit(arith.RemUIOp(number, blocks))

    def _is_paired(self, number: Index) -> Index:
        """Emits 1 if a block of a unit shares a vector with another one, else 0."""
        code = self.code
        paired = self.times(code.quotient(self.sizes.blocks, 2), 2)
        is_paired = code.emit(arith.CmpiOp(code.index(number), code.index(paired), "ult"))
        return code.emit(arith.SelectOp(is_paired, code.index(1), code.index(0)))

    def tile(self, units: Sequence[Index], rows: Sequence[Index]) -> None:
        for unit in units:
            for row, total in zip(rows, self._sums_of(unit, rows), strict=True):
                place = self.plus(self.times(row, self.sizes.units), unit)
                self.code.store(self.summed(total), self.output, place)

    def _sums_of(self, unit: Index, rows: Sequence[Index]) -> Sums:
        """Emits the computation of some rows of a unit, vector by vector."""
        code, blocks = self.code, self.sizes.blocks
        start = self.times(unit, blocks)
        row_starts = [self.times(row, blocks) for row in rows]

        def added(first: Index, totals: Sums, *, is_half: bool = False) -> Sums:
            row_blocks = [self.plus(row, first) for row in row_starts]
            return self._added(self.plus(start, first), row_blocks, totals, is_half=is_half)

        step = self._blocks
        nothing = code.emit(splat(0.0, self._totals))
        with code.loop(code.quotient(blocks, 2 * step), [nothing] * (2 * len(rows))) as loop:
            first = self.times(loop.counter, 2 * step)
            ahead = self.plus(self.times(self.plus(start, first), self.form.bytes), _AHEAD_BYTES)
            self.prefetch_lines(ahead, 2 * step * self.form.bytes)
            even, odd = loop.carried[: len(rows)], loop.carried[len(rows) :]
            loop.carry([*added(first, even), *added(self.plus(first, step), odd)])
        totals = [
            code.emit(arith.AddfOp(*both))
            for both in zip(loop.results[: len(rows)], loop.results[len(rows) :], strict=True)
        ]
        left = code.remainder(blocks, 2 * step)
        with code.loop(code.quotient(left, step), totals) as loop:
            loop.carry(added(self.plus(blocks, self.times(left, -1)), loop.carried))
        totals = loop.results
        if step == 2:
            with code.loop(code.remainder(blocks, 2), totals) as loop:
                loop.carry(added(self.plus(blocks, -1), loop.carried, is_half=True))
            totals = loop.results
        return totals

    def _added(self, unit: Index, rows: Sequence[Index], totals: Sums, *, is_half: bool) -> Sums:
        """Emits the products of a vector of a unit with each row, scaled and added to `totals`.

        Args:
            unit: number of the unit's first block among all blocks.
            rows: numbers of the rows' first blocks.
            is_half: true for the last of an odd number of blocks.
        """
        scales = self._of_blocks(self.scales, unit, is_half=is_half)
        zeros = None if self.form.one_zero else self._of_blocks(self.zeros, unit, is_half=is_half)
        found: list[SSAValue] = []
        sums = self._products(unit, rows, is_half=is_half)
        for row, sum_, total in zip(rows, sums, totals, strict=True):
            value = self.value(sum_, self._kept(self.starts, row, is_half=is_half), zeros)
            scale = self.product(scales, self._kept(self.factors, row, is_half=is_half))
            found.append(self.added_product(value, scale, total))
        return found

    def _products(self, unit: Index, rows: Sequence[Index], *, is_half: bool) -> Sums:
        """Emits the int8 products of one or two blocks of a unit with each row."""
        form = self.form
        width = form.lanes if is_half else 2 * form.lanes

        def added(step: Index, sums: Sums) -> Sums:
            at, data_at = self.times(step, width), self.times(step, width * form.codes)
            codes_at = self.plus(self.times(unit, form.bytes), at)
            packed = self._bytes_at(self.bytes, codes_at, is_half=is_half)
            for place, codes in enumerate(self.codes_in(packed)):
                offset = self.plus(data_at, place * width)
                starts = [self.plus(self.times(row, form.block), offset) for row in rows]
                numbers = [self._bytes_at(self.ordered, one, is_half=is_half) for one in starts]
                sums = [
                    self.code.emit(host.DotIntegersOp(codes, number, total))
                    for number, total in zip(numbers, sums, strict=True)
                ]
            return sums

        nothing = self.code.emit(splat(0, self._sums))
        steps = max(form.chunks // 2, 1)
        return self.in_runs(steps, RUN // form.codes, [nothing] * len(rows), added)

    def _bytes_at(self, buffer: SSAValue, at: Index, *, is_half: bool) -> SSAValue:
        """Emits the load of a vector of bytes, the upper half of which may be zero."""
        lanes = self.form.lanes if is_half else 2 * self.form.lanes
        assert isa(buffer.type, MemRefType)
        value = self.vector(buffer, at, VectorType(buffer.type.element_type, [lanes]))
        value = self.code.emit(vector.BitcastOp(value, VectorType(i8, [lanes])))
        return self._and_zeros(value, self._bytes) if is_half else value

    def _of_blocks(self, buffer: SSAValue, at: Index, *, is_half: bool) -> SSAValue:
        """Emits numbers of a unit's blocks, each in the lanes of its block."""
        lanes = VectorType(f32, [self.shares])
        if self._blocks == 1:
            return self.repeated(self.code.load(buffer, at), lanes)
        if is_half:
            return self._and_zeros(self.repeated(self.code.load(buffer, at), lanes), self._totals)
        pair = self.vector(buffer, at, VectorType(f32, [2]))
        mask = DenseArrayBase.from_list(i64, [0] * self.shares + [1] * self.shares)
        return self.code.emit(vector.ShuffleOp(pair, pair, mask, result_type=self._totals))

    def _kept(self, buffer: SSAValue, block: Index, *, is_half: bool) -> SSAValue:
        """Emits the load of numbers of a row's blocks."""
        at = self.times(block, self.shares)
        if not is_half:
            return self.vector(buffer, at, self._totals)
        lower = self.vector(buffer, at, VectorType(f32, [self.shares]))
        return self._and_zeros(lower, self._totals)

    def _and_zeros(self, lower: SSAValue, type_: VectorType) -> SSAValue:
        """Emits a vector whose upper half is zero."""
        assert isa(lower.type, VectorType)
        zeros = self.code.emit(splat(0 if type_ == self._bytes else 0.0, lower.type))
        mask = DenseArrayBase.from_list(i64, range(type_.element_count()))
        return self.code.emit(vector.ShuffleOp(lower, zeros, mask, result_type=type_))
