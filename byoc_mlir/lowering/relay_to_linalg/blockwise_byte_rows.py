"""Kernel of few rows that are rounded to bytes, by blockwise quantised weights."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, f32, i8, i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_bytes import RUN, RoundedRows
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import GROUP
from byoc_mlir.lowering.relay_to_linalg.blockwise_rows import FewRows


class FewRowsOfBytes(RoundedRows, FewRows):
    """Kernel for few rows of data that is rounded to bytes.

    A vector has a block of two units: the first unit in the lower half of the lanes, the second in
    the upper half. A unit without a neighbour is its own neighbour.
    """

    NAME = "few_of_bytes"

    @property
    def _half_bytes(self) -> VectorType:
        return VectorType(i8, [self.form.lanes])

    @property
    def _bytes(self) -> VectorType:
        return VectorType(i8, [2 * self.form.lanes])

    @property
    def _sums(self) -> VectorType:
        return VectorType(i32, [self.form.lanes // 2])

    @property
    def _totals(self) -> VectorType:
        return VectorType(f32, [self.form.lanes // 2])

    @property
    def shares(self) -> int:
        return self.form.lanes // GROUP

    def tile(self, units: Sequence[Index], rows: Sequence[Index]) -> None:
        code, blocks = self.code, self.sizes.blocks
        pairs = list(zip(units[::2], units[1::2] or units, strict=True))
        starts = [[self.times(unit, blocks) for unit in pair] for pair in pairs]
        row_starts = [self.times(row, blocks) for row in rows]
        nothing = code.emit(splat(0.0, self._totals))
        with code.loop(blocks, [nothing] * (len(rows) * len(pairs))) as loop:
            numbers = [[self.plus(start, loop.counter) for start in pair] for pair in starts]
            row_blocks = [self.plus(start, loop.counter) for start in row_starts]
            self.prefetch_next(starts[0][0], loop.counter, len(units))
            sums = self._products(numbers, row_blocks)
            loop.carry(self._scaled(numbers, row_blocks, sums, loop.carried))
        places = [(pair, row) for pair in pairs for row in rows]
        for (pair, row), total in zip(places, loop.results, strict=True):
            for half, unit in enumerate(pair):
                place = self.plus(self.times(row, self.sizes.units), unit)
                code.store(self.summed(self._half(total, half)), self.output, place)

    def _products(self, pairs: Sequence[Sequence[Index]], rows: Sequence[Index]) -> Sums:
        """Emits the int8 products of a block of each pair of units with each row."""
        form = self.form

        def added(chunk: Index, sums: Sums) -> Sums:
            at, data_at = self.times(chunk, form.lanes), self.times(chunk, form.chunk)
            places = [
                [self.plus(self.times(unit, form.bytes), at) for unit in pair] for pair in pairs
            ]
            packed = [[self._codes(place) for place in pair] for pair in places]
            joined = [self._joined(first, second, self._bytes) for first, second in packed]
            codes = [list(self.codes_in(one)) for one in joined]
            for place in range(form.codes):
                offset = self.plus(data_at, place * form.lanes)
                data = [self.plus(self.times(row, form.block), offset) for row in rows]
                numbers = [self.vector(self.ordered, one, self._half_bytes) for one in data]
                numbers = [self._joined(one, one, self._bytes) for one in numbers]
                factors = [(one[place], number) for one in codes for number in numbers]
                sums = [
                    self.code.emit(host.DotIntegersOp(*both, total))
                    for both, total in zip(factors, sums, strict=True)
                ]
            return sums

        nothing = self.code.emit(splat(0, self._sums))
        totals = [nothing] * (len(pairs) * len(rows))
        return self.in_runs(form.chunks, RUN // form.codes, totals, added)

    def _scaled(
        self,
        pairs: Sequence[Sequence[Index]],
        rows: Sequence[Index],
        sums: Sums,
        totals: Sums,
    ) -> Sums:
        """Emits the sums of a block, less the zero points and scaled, added to `totals`."""
        code = self.code
        starts = [self.repeated(code.load(self.starts, row), self._totals) for row in rows]
        factors = [self.repeated(code.load(self.factors, row), self._totals) for row in rows]
        found: list[SSAValue] = []
        for pair in pairs:
            scales = self._of_pair(self.scales, pair)
            zeros = None if self.form.one_zero else self._of_pair(self.zeros, pair)
            for start, factor in zip(starts, factors, strict=True):
                value = self.value(sums[len(found)], start, zeros)
                scale = self.product(scales, factor)
                found.append(self.added_product(value, scale, totals[len(found)]))
        return found

    def _of_pair(self, buffer: SSAValue, pair: Sequence[Index]) -> SSAValue:
        """Emits the elements of a pair's blocks, each in half of the lanes."""
        half = VectorType(f32, [self.form.lanes // GROUP])
        lower, upper = (self.repeated(self.code.load(buffer, unit), half) for unit in pair)
        return self._joined(lower, upper, self._totals)

    def _codes(self, at: Index) -> SSAValue:
        """Emits the load of a chunk of codes."""
        return self.code.emit(vector.BitcastOp(self.packed(at), self._half_bytes))

    def _joined(self, lower: SSAValue, upper: SSAValue, type_: VectorType) -> SSAValue:
        """Emits the lanes of `lower`, then those of `upper`."""
        mask = DenseArrayBase.from_list(i64, range(type_.element_count()))
        return self.code.emit(vector.ShuffleOp(lower, upper, mask, result_type=type_))

    def _half(self, value: SSAValue, half: int) -> SSAValue:
        """Emits the lower or the upper half of a pair's sums."""
        lanes = self.form.lanes // GROUP
        mask = DenseArrayBase.from_list(i64, range(half * lanes, (half + 1) * lanes))
        type_ = VectorType(f32, [lanes])
        return self.code.emit(vector.ShuffleOp(value, value, mask, result_type=type_))
