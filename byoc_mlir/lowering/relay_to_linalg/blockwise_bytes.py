"""Kernel of GEMMs with blockwise quantised weights, for data that is rounded to bytes.

Each block of a row has a scale, with which its largest element becomes 127. The int8 products
are summed as integers in a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import arith, llvm, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerType,
    VectorType,
    f32,
    i8,
    i32,
    i64,
)
from xdsl.ir import SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import BlockwiseForm, BlockwiseSizes
from byoc_mlir.lowering.relay_to_linalg.blockwise_rows import FewRows

_CHUNK_BYTES = 16
_FEWEST_BYTES = 8
"""Bytes of the smallest block for which there are instructions."""

_MOST = 127.0
_SMALLEST = 1e-30
"""Divisor for blocks of zeros."""

_ROUNDING = 1.5 * 2**23
"""Number that is added to a small one to round it to an integer, which is in the lowest bits of the
sum."""


def takes_bytes(form: BlockwiseForm) -> bool:
    """True if `FewRowsOfBytes` has code for these weights: sums of two products fit 16 bits."""
    return form.codes > 1 and form.bytes >= _FEWEST_BYTES


def rounded_lanes(form: BlockwiseForm) -> int:
    """Returns the lanes of the sums of `FewRowsOfBytes`."""
    return min(_CHUNK_BYTES, form.bytes) // 2


class FewRowsOfBytes(FewRows):
    """Kernel for few rows of data that is rounded to bytes.

    Further memory is for bytes in the order of the codes `[rows, steps]`, sums with which blocks
    start `[rows, blocks, rounded_lanes]`, and scales `[rows, blocks]`.
    """

    NAME = "few_of_bytes"
    MEMORY = (i8, f32, f32)

    def __init__(
        self,
        code: LoopWriter,
        form: BlockwiseForm,
        sizes: BlockwiseSizes,
        buffers: Sequence[SSAValue],
    ):
        super().__init__(code, replace(form, vector_lanes=_CHUNK_BYTES), sizes, buffers)
        self.ordered, self.starts, self._factors = buffers[-len(self.MEMORY) :]
        self.total_type = VectorType(f32, [self.form.lanes // 2])
        self._bytes_type = VectorType(i8, [self.form.lanes])
        self._pair_type = VectorType(i8, [2 * self.form.lanes])
        self._sum_type = VectorType(i32, [self.form.lanes // 2])

    def order_data(self, first: Index, count: Index) -> None:
        """Emits the rounding of the data, and the sums that take the zero points into account."""
        code, form = self.code, self.form
        with self.blocks_of(first, count) as block:
            begin = self.times(block, form.block)

            def larger(chunk: Index, found: Sums) -> Sums:
                at = self.plus(begin, self.times(chunk, form.chunk))
                return [self._largest([*found, *map(self._magnitude, self.parts(at))])]

            (most,) = self.over_chunks([self.zero], larger)
            most = self._largest_lane(most)
            factor = self.product(most, code.emit(splat(1 / _MOST, self.numbers)))
            zero_lane = code.emit(vector.ExtractOp(factor, [0], f32))
            code.store(zero_lane, self._factors, block)
            divisor = self._largest([most, code.emit(splat(_SMALLEST, self.numbers))])
            inverse = code.emit(arith.DivfOp(code.emit(splat(_MOST, self.numbers)), divisor))

            def rounded(chunk: Index, totals: Sums) -> Sums:
                at = self.plus(begin, self.times(chunk, form.chunk))
                (total,) = totals
                for place, part in enumerate(self.parts(at)):
                    number = self._rounded(self.product(part, inverse))
                    self.store(self._byte(number), self.ordered, self.plus(at, place * form.lanes))
                    total = code.emit(arith.AddfOp(total, self._value(number)))
                return [total]

            (total,) = self.over_chunks([self.zero], rounded)
            start = self.start(self._halved(total))
            self.store(start, self.starts, self.times(block, form.lanes // 2))

    def _magnitude(self, value: SSAValue) -> SSAValue:
        return self._largest([value, self.code.emit(arith.NegfOp(value))])

    def _largest(self, values: Sequence[SSAValue]) -> SSAValue:
        first, *others = values
        for other in others:
            first = self.code.emit(arith.MaximumfOp(first, other))
        return first

    def _largest_lane(self, value: SSAValue) -> SSAValue:
        """Emits the maximum of a vector's lanes, in all lanes."""
        lanes, distance = self.form.lanes, self.form.lanes // 2
        while distance:
            mask = DenseArrayBase.from_list(i64, [(n + distance) % lanes for n in range(lanes)])
            other = self.code.emit(vector.ShuffleOp(value, value, mask, result_type=self.numbers))
            value, distance = self._largest([value, other]), distance // 2
        return value

    def _rounded(self, value: SSAValue) -> SSAValue:
        """Emits a number whose lowest bits are the rounded value."""
        return self.code.emit(arith.AddfOp(value, self.code.emit(splat(_ROUNDING, self.numbers))))

    def _byte(self, rounded: SSAValue) -> SSAValue:
        """Emits the lowest bytes of numbers."""
        bytes_ = VectorType(i8, [4 * self.form.lanes])
        bits = self.code.emit(vector.BitcastOp(rounded, bytes_))
        lowest = DenseArrayBase.from_list(i64, range(0, 4 * self.form.lanes, 4))
        return self.code.emit(vector.ShuffleOp(bits, bits, lowest, result_type=self._bytes_type))

    def _value(self, rounded: SSAValue) -> SSAValue:
        return self.code.emit(arith.SubfOp(rounded, self.code.emit(splat(_ROUNDING, self.numbers))))

    def _halved(self, value: SSAValue) -> SSAValue:
        """Emits the sums of the lower and the upper lanes."""
        half = self.form.lanes // 2
        masks = (DenseArrayBase.from_list(i64, range(n, n + half)) for n in (0, half))
        lower, upper = (
            self.code.emit(vector.ShuffleOp(value, value, mask, result_type=self.total_type))
            for mask in masks
        )
        return self.code.emit(arith.AddfOp(lower, upper))

    def scale(self, unit: Index, row: Index) -> SSAValue:
        """Emits the scale of a unit's block times the one of a row's block."""
        code = self.code
        product = self.product(code.load(self.scales, unit), code.load(self._factors, row))
        return self.repeated(product, self.total_type)

    def block(self, units: Sequence[Index], rows: Sequence[Index]) -> Sums:
        """Emits the dot products of a block of each unit with each row, less the zero points."""
        code, form, lanes = self.code, self.form, self.form.lanes
        code_starts = [self.times(unit, form.bytes) for unit in units]
        data_starts = [self.times(row, form.block) for row in rows]

        def added(chunk: Index, sums: Sums) -> Sums:
            at, data_at = self.times(chunk, lanes), self.times(chunk, form.chunk)
            codes = [self._pairs(self.plus(start, at)) for start in code_starts]
            for pair in range(form.codes // 2):
                offset = self.plus(data_at, 2 * pair * lanes)
                numbers = [
                    self.vector(self.ordered, self.plus(start, offset), self._pair_type)
                    for start in data_starts
                ]
                factors = [(one[pair], number) for one in codes for number in numbers]
                sums = [
                    code.emit(host.DotBytesOp(*both, total))
                    for both, total in zip(factors, sums, strict=True)
                ]
            return sums

        nothing = code.emit(_whole(0, self._sum_type))
        sums = self.over_chunks([nothing] * (len(units) * len(rows)), added)
        starts = [
            self.vector(self.starts, self.times(row, lanes // 2), self.total_type) for row in rows
        ]
        starts = [start for _ in units for start in starts]
        if not self.form.one_zero:
            zeros = [self.repeated(code.load(self.zeros, unit), self.total_type) for unit in units]
            starts = list(map(self.product, (zero for zero in zeros for _ in rows), starts))
        values = [code.emit(llvm.SIToFPOp(total, self.total_type)) for total in sums]
        return [code.emit(arith.AddfOp(*both)) for both in zip(values, starts, strict=True)]

    def _pairs(self, at: Index) -> list[SSAValue]:
        """Emits the codes in a chunk of bytes, those at two neighbouring places in one vector."""
        code, bits = self.code, self.form.bits
        packed = code.emit(vector.BitcastOp(self.packed(at), self._bytes_type))
        mask = code.emit(_whole(2**bits - 1, self._bytes_type))
        parts: list[SSAValue] = []
        for offset in range(0, 8, bits):
            distance = code.emit(_whole(offset, self._bytes_type))
            shifted = code.emit(arith.ShRUIOp(packed, distance)) if offset else packed
            parts.append(code.emit(arith.AndIOp(shifted, mask)))
        both = DenseArrayBase.from_list(i64, range(2 * self.form.lanes))
        return [
            code.emit(vector.ShuffleOp(*pair, both, result_type=self._pair_type))
            for pair in zip(parts[::2], parts[1::2], strict=True)
        ]


def _whole(value: int, type_: VectorType[IntegerType]) -> arith.ConstantOp:
    """Returns a vector constant of equal integers."""
    return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(type_, [value]), type_)
