"""Data of GEMMs with blockwise quantised weights that is rounded to bytes.

Each block of a row has a scale, with which its largest element becomes 127. The int8 products
are summed as integers in a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, llvm, vector
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerType,
    VectorType,
    f32,
    i8,
    i16,
)
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    BlockwiseForm,
    BlockwiseWriter,
)

_FEWEST_BYTES = 8
"""Bytes of the smallest block for which there are instructions."""

RUN = 8
"""Most int8 products of a lane that fit 16 bits, if codes have up to four bits and each product is
a sum of two.
"""

_MOST = 127.0
_SMALLEST = 1e-30
"""Divisor for blocks of zeros."""

_ROUNDING = 1.5 * 2**23
"""Number that is added to a small one to round it to an integer, which is in the lowest bits of the
sum."""


def takes_bytes(form: BlockwiseForm) -> bool:
    """True if `RoundedRows` has code for these weights: sums of two products fit 16 bits."""
    return form.codes > 1 and form.bytes >= _FEWEST_BYTES


class RoundedRows(BlockwiseWriter):
    """Base of kernels for data that is rounded to bytes.

    Their memory is for bytes in the order of the codes `[rows, steps]`, values with which blocks
    start `[rows, blocks]`, and scales `[rows, blocks]`; kernels may repeat the last two.
    """

    MEMORY = (i8, f32, f32)

    @property
    def numbers(self) -> VectorType:
        """Returns the type of the data for a code of each byte of a chunk."""
        return VectorType(f32, [self.chunk_bytes])

    @property
    def starts(self) -> SSAValue:
        """Returns the buffer of the values with which blocks start."""
        return self.memory[1]

    @property
    def factors(self) -> SSAValue:
        """Returns the buffer of the scales."""
        return self.memory[2]

    def narrow(self, sum_type: VectorType[IntegerType]) -> VectorType[IntegerType]:
        """Returns the type of the sums to which int8 products are added first."""
        lanes = 2 * sum_type.element_count()
        return VectorType(i16, [lanes]) if self.form.sums_pairs else sum_type

    def in_runs(
        self, steps: int, run: int, totals: Sums, added: Callable[[Index, Sums], Sums]
    ) -> Sums:
        """Emits steps that `added` adds to `totals`, in 16 bits for the steps of a run.

        A step adds to a lane `RUN / run` times. The loops keep LLVM from reordering sums, which
        would not fit in the registers.
        """
        code, type_ = self.code, totals[0].type
        assert isa(type_, VectorType[IntegerType])
        run, narrow = min(run, steps), self.narrow(type_)

        def one_run(number: Index, totals: Sums) -> Sums:
            nothing = code.emit(splat(0, narrow))
            sums = [nothing] * len(totals) if self.form.sums_pairs else totals
            first = self.times(number, run)
            sums = added(first, sums)  # in a loop, LLVM would add the zeros
            after = self.plus(first, 1)
            sums = self.over(
                run - 1, sums, lambda step, sums: added(self.plus(after, step), sums), 1
            )
            if not self.form.sums_pairs:
                return sums
            ones = code.emit(splat(1, narrow))
            return [
                code.emit(host.DotIntegersOp(sum_, ones, total))
                for sum_, total in zip(sums, totals, strict=True)
            ]

        return self.over(steps // run, totals, one_run)

    def order_data(self, first: Index, count: Index) -> None:
        """Emits the rounding of the data, and the values that take the zero points into account."""
        code, form = self.code, self.form
        nothing = code.emit(splat(0.0, self.numbers))
        with self.blocks_of(first, count) as block:
            begin = self.times(block, form.block)

            def larger(chunk: Index, found: Sums) -> Sums:
                at = self.plus(begin, self.times(chunk, self.chunk))
                return [self._largest([*found, *map(self._magnitude, self.parts(at, form.codes))])]

            (most,) = self.over_chunks([nothing], larger)
            most = self._largest_lane(most)
            factor = self.product(most, code.emit(splat(1 / _MOST, self.numbers)))
            zero_lane = code.emit(vector.ExtractOp(factor, [0], f32))
            self.keep(zero_lane, self.factors, block)
            divisor = self._largest([most, code.emit(splat(_SMALLEST, self.numbers))])
            inverse = code.emit(arith.DivfOp(code.emit(splat(_MOST, self.numbers)), divisor))

            def rounded(chunk: Index, totals: Sums) -> Sums:
                at = self.plus(begin, self.times(chunk, self.chunk))
                (total,) = totals
                for place, part in enumerate(self.parts(at, form.codes)):
                    number = self._rounded(self.product(part, inverse))
                    self.store(
                        self._byte(number), self.ordered, self.ordered_place(block, chunk, place)
                    )
                    total = code.emit(arith.AddfOp(total, self._value(number)))
                return [total]

            (total,) = self.over_chunks([nothing], rounded)
            share = code.emit(arith.ConstantOp(FloatAttr(-1.0 / self.shares, f32)))
            start = self.product(self.summed(total), share)
            start = self.product(start, zero_lane)
            if form.one_zero:
                start = self.product(start, code.load(self.zeros, 0))
            self.keep(start, self.starts, block)

    def keep(self, number: SSAValue, buffer: SSAValue, block: Index) -> None:
        """Emits the store of a number of a block."""
        self.code.store(number, buffer, block)

    def ordered_place(self, block: Index, chunk: Index, code: int) -> Index:
        """Emits the place in the ordered data for the elements of a chunk's codes of a number."""
        begin = self.plus(self.times(block, self.form.block), self.times(chunk, self.chunk))
        return self.plus(begin, code * self.chunk_bytes)

    def _magnitude(self, value: SSAValue) -> SSAValue:
        return self._largest([value, self.code.emit(arith.NegfOp(value))])

    def _largest(self, values: Sequence[SSAValue]) -> SSAValue:
        first, *others = values
        for other in others:
            first = self.code.emit(arith.MaximumfOp(first, other))
        return first

    def _largest_lane(self, value: SSAValue) -> SSAValue:
        """Emits the maximum of a vector's lanes, in all lanes."""
        lanes, distance = self.chunk_bytes, self.chunk_bytes // 2
        while distance:
            other = self.shuffled(value, value, [(n + distance) % lanes for n in range(lanes)])
            value, distance = self._largest([value, other]), distance // 2
        return value

    def _rounded(self, value: SSAValue) -> SSAValue:
        """Emits a number whose lowest bits are the rounded value."""
        return self.code.emit(arith.AddfOp(value, self.code.emit(splat(_ROUNDING, self.numbers))))

    def _byte(self, rounded: SSAValue) -> SSAValue:
        """Emits the lowest bytes of numbers."""
        count = 4 * self.chunk_bytes
        bits = self.code.emit(vector.BitcastOp(rounded, VectorType(i8, [count])))
        return self.shuffled(bits, bits, range(0, count, 4))

    def _value(self, rounded: SSAValue) -> SSAValue:
        return self.code.emit(arith.SubfOp(rounded, self.code.emit(splat(_ROUNDING, self.numbers))))

    def value(
        self, sum_: SSAValue, factor: SSAValue, start: SSAValue, zero: SSAValue | None
    ) -> SSAValue:
        """Emits sums of int8 products as floats, less the zero points.

        Args:
            sum_: the sums.
            factor: scale of the data.
            start: value with which the block starts.
            zero: zero point of the block; `None` if all blocks have the same.
        """
        value = self.code.emit(llvm.SIToFPOp(sum_, cast(VectorType, start.type)))
        if zero is None:
            return self.added_product(value, factor, start)
        return self.added_product(start, zero, self.product(value, factor))
