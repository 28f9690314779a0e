"""Kernel of few rows of data by blockwise quantised weights: the sums stay in registers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, product

from xdsl.dialects import arith, llvm, vector
from xdsl.dialects.builtin import VectorType, f32, i8, i32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    BYTE,
    GROUP,
    BlockwiseForm,
    BlockwiseWriter,
)
from byoc_mlir.lowering.relay_to_linalg.scalars import CONTRACT

_GROUPED_BLOCKS = 8
"""Neighbouring blocks of a unit in whole vectors."""

_AHEAD_BYTES = 4096
"""Distance of prefetches: at 20 GB a second, twice the time that memory takes to answer."""

_WORD_BITS, _HALF_BITS = 32, 16


def vector_bytes(form: BlockwiseForm) -> int:
    """Returns the number of bytes of codes in a vector of words."""
    return min(GROUP * form.unit.lanes, _GROUPED_BLOCKS * form.bytes)


def lanes_of_block(form: BlockwiseForm) -> int:
    """Returns the number of lanes of a vector in which a block is summed."""
    return min(vector_bytes(form), form.bytes) // GROUP


class FewRows(BlockwiseWriter):
    """Kernel for few rows.

    Units follow each other, so that codes and scales are two streams of memory. A lane of a vector
    is a word of codes: of a block, or of neighbouring blocks if these are smaller than a vector. A
    code is masked where it stands in the upper or lower half of its word; as a number it is a power
    of two too large, by which the data is divided instead of shifting the codes. Blocks are
    grouped; the last ones, which fill no group, have vectors of their own.

    For a symbolic number of rows, the kernel computes one row after the other. Further memory
    `[rows, blocks, lanes of a block]` is for the sums with which blocks start.
    """

    NAME = "few"
    MEMORY = (f32, f32)

    @staticmethod
    def tile_units(form: BlockwiseForm) -> int:
        return 1

    @property
    def most_chunk_bytes(self) -> int:
        return vector_bytes(self.form)

    @property
    def starts(self) -> SSAValue:
        """Returns the buffer of the sums with which blocks start."""
        return self.memory[1]

    @property
    def shares(self) -> int:
        """Returns the number of lanes that each add a block's start."""
        return lanes_of_block(self.form)

    @property
    def _lanes(self) -> int:
        return vector_bytes(self.form) // GROUP

    @property
    def _vector_blocks(self) -> int:
        """Returns the number of blocks in a vector; 1 if a block is several vectors."""
        return self._lanes // self.shares

    def order_data(self, first: Index, count: Index) -> None:
        """Emits the order of the data, and the sums that take the zero points into account."""
        code, form = self.code, self.form
        lanes, offsets = VectorType(f32, [self.shares]), self._offsets()
        with self.blocks_of(first, count) as block:
            start = self.times(block, form.block)

            def ordered(chunk: Index, totals: Sums) -> Sums:
                (total,) = totals
                parts = self.parts(self.plus(start, self.times(chunk, self.chunk)), len(offsets))
                for place, (part, offset) in enumerate(zip(parts, offsets, strict=True)):
                    total = code.emit(arith.AddfOp(total, part, CONTRACT))
                    part = self.product(part, code.emit(splat(2.0**-offset, lanes)))
                    self.store(part, self.ordered, self.place(block, chunk, place))
                return [total]

            (total,) = self.over_chunks([code.emit(splat(0.0, lanes))], ordered)
            self.store(self._start(total), self.starts, self.times(block, self.shares))

    def _offsets(self) -> list[int]:
        """Returns the first bit of each code of a word in its half."""
        offsets = range(0, _HALF_BITS, self.form.bits)
        return [offset for _, offset in product(range(_WORD_BITS // _HALF_BITS), offsets)]

    def _start(self, total: SSAValue) -> SSAValue:
        """Emits the sum of a block times the negative zero point, or minus one if blocks have their
        own.
        """
        lanes = VectorType(f32, [self.shares])
        factor = self.code.emit(splat(-1.0, lanes))
        if self.form.one_zero:
            zero = self.repeated(self.code.load(self.zeros, 0), lanes)
            factor = self.product(factor, zero)
        return self.product(factor, total)

    def place(self, block: Index, chunk: Index, part: int, lane: int = 1) -> Index:
        """Emits the place in the ordered data for a part of a chunk.

        Args:
            block: number of the block among those of all rows.
            chunk: number of the chunk in the block.
            part: number of the part.
            lane: elements that a part has for a lane.
        """
        own, whole = self.shares * lane, self._lanes * lane
        begin = self.plus(self.times(block, self.form.block), self.times(chunk, self.chunk))
        if self._vector_blocks == 1:
            return self.plus(begin, own * part)
        code, blocks = self.code, self.code.index(self.sizes.blocks)
        number = code.emit(arith.RemUIOp(code.index(block), blocks))
        grouped = code.index(self._grouped())
        is_grouped = code.emit(arith.CmpiOp(number, grouped, "ult"))
        # blocks of a vector begin right after the first part of the block before
        back = self.times(code.remainder(number, self._vector_blocks), own - self.form.block)
        in_vector = self.plus(begin, back, whole * part)
        places = (code.index(one) for one in (in_vector, self.plus(begin, own * part)))
        return code.emit(arith.SelectOp(is_grouped, *places))

    def _grouped(self) -> Index:
        """Emits the number of blocks of a unit that are in groups."""
        size = _GROUPED_BLOCKS
        return self.times(self.code.quotient(self.sizes.blocks, size), size)

    def panel(self, first: Index, count: Index, tile: int) -> None:
        rows, code = self.sizes.rows, self.code
        with code.loop(count, step=tile) as loop:
            unit = self.plus(first, loop.counter)
            if isinstance(rows, int):
                self._unit(unit, range(rows))
                return
            with code.loop(rows) as row:
                self._unit(unit, [row.counter])

    def _unit(self, unit: Index, rows: Sequence[Index]) -> None:
        """Emits the computation of some rows of a unit."""
        code, blocks = self.code, self.sizes.blocks
        start = self.times(unit, blocks)
        row_starts = [self.times(row, blocks) for row in rows]
        grouped = self._grouped()
        nothing = code.emit(splat(0.0, VectorType(f32, [self._lanes])))
        totals: Sums = [nothing] * (len(rows) * self._vector_blocks)
        with code.loop(grouped, totals, step=_GROUPED_BLOCKS) as loop:
            ahead = self.times(self.plus(start, loop.counter), self.form.bytes)
            self.prefetch_lines(self.plus(ahead, _AHEAD_BYTES), _GROUPED_BLOCKS * self.form.bytes)
            totals = loop.carried
            for number in range(0, _GROUPED_BLOCKS, self._vector_blocks):
                block = self.plus(loop.counter, number)
                row_blocks = [self.plus(row, block) for row in row_starts]
                totals = self._added(self.plus(start, block), row_blocks, self._lanes, totals)
            loop.carry(totals)
        nothing = code.emit(splat(0.0, VectorType(f32, [self.shares])))
        left = self.plus(blocks, self.times(grouped, -1))
        with code.loop(left, [nothing] * len(rows)) as rest:
            block = self.plus(grouped, rest.counter)
            row_blocks = [self.plus(row, block) for row in row_starts]
            unit_block = self.plus(start, block)
            rest.carry(self._added(unit_block, row_blocks, self.shares, rest.carried))
        places = [min(lane, self.shares) for lane in range(self._lanes)]
        for number, (row, more) in enumerate(zip(rows, rest.results, strict=True)):
            total = self._joined(loop.results[number * self._vector_blocks :])
            more = self.shuffled(more, nothing, places)
            total = self.summed(code.emit(arith.AddfOp(total, more)))
            code.store(total, self.output, self.plus(self.times(row, self.sizes.units), unit))

    def _added(self, unit: Index, rows: Sequence[Index], lanes: int, totals: Sums) -> Sums:
        """Emits the addition of a vector's blocks to the rows' totals.

        A row has a total for each of these blocks, in which only the lanes of the block are right:
        scales in the lanes of their blocks would cost more than a second addition.

        Args:
            unit: number of the first block among all blocks.
            rows: numbers of the rows' first blocks.
            lanes: number of the vector's lanes.
        """
        blocks = [self.plus(unit, number) for number in range(lanes // self.shares)]
        type_ = VectorType(f32, [lanes])
        scales = [self.repeated(self.code.load(self.scales, one), type_) for one in blocks]
        zeros = [
            self.repeated(self.code.load(self.zeros, one), type_)
            for one in blocks
            if not self.form.one_zero
        ]
        values = self.values(unit, rows, lanes, zeros)
        pairs = [pair for row in values for pair in zip(cycle(row), scales)]
        return [self.added_product(*pair, total) for pair, total in zip(pairs, totals, strict=True)]

    def _joined(self, totals: Sums) -> SSAValue:
        """Emits a vector of the lanes that are right in each of a row's totals."""
        joined = totals[0]
        for number in range(1, self._vector_blocks):
            places = [
                lane + self._lanes * (lane >= number * self.shares) for lane in range(self._lanes)
            ]
            joined = self.shuffled(joined, totals[number], places)
        return joined

    def values(
        self, unit: Index, rows: Sequence[Index], lanes: int, zeros: Sequence[SSAValue]
    ) -> Sequence[Sums]:
        """Emits the sums of a vector's blocks, less the zero points, for each row.

        Args:
            unit: number of the first block among all blocks.
            rows: numbers of the rows' first blocks.
            lanes: number of the vector's lanes.
            zeros: zero points of the blocks, each in all lanes; a row has sums for each of them.
                Empty if all blocks have the same; a row then has sums that serve all blocks.
        """
        code, form = self.code, self.form
        floats, words = VectorType(f32, [lanes]), VectorType(i32, [lanes])
        begins = [self.vector(self.starts, self.times(row, self.shares), floats) for row in rows]
        nothing = code.emit(splat(0.0, floats))
        chains = 2 if len(rows) == 1 else 1  # an addition takes longer than the next code
        codes_start = self.times(unit, form.bytes)
        starts = [self.times(row, form.block) for row in rows]
        offsets = self._offsets()

        def added(step: Index, sums: Sums) -> Sums:
            at, data_at = self.times(step, GROUP * lanes), self.times(step, len(offsets) * lanes)
            packed = self.codes_at(self.plus(codes_start, at), lanes)
            packed = code.emit(vector.BitcastOp(packed, words))
            distance = code.emit(splat(_HALF_BITS, words))
            for place, offset in enumerate(offsets):
                if place == len(offsets) // 2:
                    packed = code.emit(arith.ShRUIOp(packed, distance))
                mask = code.emit(splat((2**form.bits - 1) << offset, words))
                codes = code.emit(llvm.SIToFPOp(code.emit(arith.AndIOp(packed, mask)), floats))
                part_at = self.plus(data_at, place * lanes)
                numbers = (
                    self.vector(self.ordered, self.plus(start, part_at), floats) for start in starts
                )
                chain = slice(place % chains * len(rows), (place % chains + 1) * len(rows))
                totals = [
                    self.added_product(codes, number, total)
                    for number, total in zip(numbers, sums[chain], strict=True)
                ]
                sums = [*sums[: chain.start], *totals, *sums[chain.stop :]]
            return sums

        sums: Sums = [*([nothing] * len(rows) if zeros else begins)]
        sums = [*sums, *[nothing] * (len(rows) * (chains - 1))]
        sums = self.over_chunks(sums, added)
        if chains > 1:
            first, second = sums
            sums = [code.emit(arith.AddfOp(first, second))]
        if not zeros:
            return [[one] for one in sums]
        return [
            [self.added_product(begin, zero, one) for zero in zeros]
            for begin, one in zip(begins, sums, strict=True)
        ]

    def codes_at(self, at: Index, lanes: int) -> SSAValue:
        """Emits the load of the bytes of some words."""
        bytes_ = [GROUP * lanes]
        loaded = self.vector(self.bytes, at, VectorType(BYTE, bytes_))
        return self.code.emit(vector.BitcastOp(loaded, VectorType(i8, bytes_)))
