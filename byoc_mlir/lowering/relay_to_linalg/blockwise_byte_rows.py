"""Kernel of few rows that are rounded to bytes, by blockwise quantised weights."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType, f32, i8, i32
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

    The parts of the data for a vector are those for the first codes of all bytes, for the second
    ones, and so on. A lane sums the products of its word.
    """

    NAME = "few_of_bytes"

    def keep(self, number: SSAValue, buffer: SSAValue, block: Index) -> None:
        lanes = VectorType(f32, [self.shares])
        self.store(self.repeated(number, lanes), buffer, self.times(block, self.shares))

    def ordered_place(self, block: Index, chunk: Index, code: int) -> Index:
        return self.place(block, chunk, code, GROUP)

    def values(
        self, unit: Index, rows: Sequence[Index], lanes: int, zeros: Sequence[SSAValue]
    ) -> Sequence[Sums]:
        form, bytes_ = self.form, VectorType(i8, [GROUP * lanes])
        codes_start = self.times(unit, form.bytes)
        starts = [self.times(row, form.block) for row in rows]

        def added(step: Index, sums: Sums) -> Sums:
            at = self.times(step, GROUP * lanes)
            packed = self.codes_at(self.plus(codes_start, at), lanes)
            for place, codes in enumerate(self.codes_in(packed)):
                part_at = self.plus(self.times(at, form.codes), place * GROUP * lanes)
                numbers = (
                    self.vector(self.ordered, self.plus(start, part_at), bytes_) for start in starts
                )
                sums = [
                    self.code.emit(host.DotIntegersOp(codes, number, total))
                    for number, total in zip(numbers, sums, strict=True)
                ]
            return sums

        nothing = self.code.emit(splat(0, VectorType(i32, [lanes])))
        sums = self.in_runs(self.chunks, RUN // form.codes, [nothing] * len(rows), added)
        floats = VectorType(f32, [lanes])
        found: list[Sums] = []
        for row, sum_ in zip(rows, sums, strict=True):
            at = self.times(row, self.shares)
            factor, start = (self.vector(one, at, floats) for one in (self.factors, self.starts))
            found.append([self.value(sum_, factor, start, zero) for zero in zeros or [None]])
        return found
