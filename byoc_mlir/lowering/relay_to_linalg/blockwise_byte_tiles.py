"""Kernel of many rows that are rounded to bytes, by blockwise quantised weights."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, f32, i1, i8, i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_bytes import RUN, RoundedRows, whole
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    PANEL,
    BlockwiseForm,
    BlockwiseSizes,
)
from byoc_mlir.lowering.relay_to_linalg.blockwise_tiles import BlockRange, ManyRows

_GROUP = 4
"""Neighbouring steps that a lane multiplies at a time."""

_ACCUMULATORS = 12
"""Accumulators of a tile, for 16 registers."""


class ManyRowsOfBytes(RoundedRows, ManyRows):
    """Kernel for many rows of data that is rounded to bytes.

    Lanes are units. On the stack are a tile's sums `[blocks, tile_rows, PANEL]`, codes as bytes
    `[blocks, vectors of units, groups, lanes, 4]`, and scales and zero points `[blocks, PANEL]`. A
    panel that is not full repeats the last unit.
    """

    NAME = "many_of_bytes"
    TILE_UNITS = 1

    def __init__(
        self,
        code: LoopWriter,
        form: BlockwiseForm,
        sizes: BlockwiseSizes,
        buffers: Sequence[SSAValue],
    ):
        super().__init__(code, form, sizes, buffers)
        self._units = lanes = form.vector_lanes
        self._vectors = range(PANEL // lanes)
        self._groups = form.block // _GROUP
        self._floats = VectorType(f32, [lanes])
        self._words = VectorType(i32, [lanes])
        self._group_type = VectorType(i8, [_GROUP * lanes])

    @property
    def tile_rows(self) -> int:
        return _ACCUMULATORS // len(self._vectors)

    def unpacked_memory(self, blocks: int) -> Sequence[SSAValue]:
        steps = self.form.block * PANEL
        sizes = [(i32, _ACCUMULATORS * self._units), (i8, steps), (f32, PANEL), (f32, PANEL)]
        return [
            self.code.emit(memref.AllocaOp.get(type_, 64, [blocks * size]))
            for type_, size in (sizes[:3] if self.form.one_zero else sizes)
        ]

    def unpack(self, part: BlockRange) -> None:
        code, form = self.code, self.form
        last = self.plus(self.sizes.units, -1)
        units = [code.minimum(self.plus(part.unit, unit), last) for unit in range(PANEL)]
        starts = [self.plus(self.times(unit, self.sizes.blocks), part.first) for unit in units]
        with code.loop(part.blocks) as loop:
            blocks = [self.plus(start, loop.counter) for start in starts]
            at = self.times(loop.counter, PANEL)
            for unit, block in enumerate(blocks):
                for source, target in zip((self.scales, self.zeros), part.memory[2:], strict=False):
                    code.store(code.load(source, block), target, self.plus(at, unit))
            for vector_ in self._vectors:
                some = blocks[vector_ * self._units :][: self._units]
                first = self.plus(at, vector_ * self._units)
                self._unpack_codes(some, part.memory[1], self.times(first, form.block))

    def _unpack_codes(self, blocks: Sequence[Index], target: SSAValue, first: Index) -> None:
        """Emits the codes of a block of some units, groups of neighbouring codes together."""
        form = self.form
        words = VectorType(i32, [form.lanes // _GROUP])
        bytes_ = VectorType(i8, [form.lanes * len(blocks)])
        starts = [self.times(block, form.bytes) for block in blocks]

        def unpacked(chunk: Index, sums: Sums) -> Sums:
            at = self.times(chunk, form.lanes)
            chunks = [
                self.code.emit(vector.BitcastOp(self.packed(self.plus(start, at)), words))
                for start in starts
            ]
            joined = self.code.emit(vector.BitcastOp(self._interleaved(chunks), bytes_))
            size = form.lanes * len(blocks)
            for place, codes in enumerate(self.codes_in(joined)):
                offset = self.plus(self.times(at, len(blocks) * form.codes), place * size)
                self.store(codes, target, self.plus(first, offset))
            return sums

        self.over_chunks([], unpacked)

    def _interleaved(self, values: Sequence[SSAValue]) -> SSAValue:
        """Emits the first words of all vectors, then the second ones, and so on."""
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
        code, tile = self.code, _ACCUMULATORS * self._units
        before = [self.times(self.plus(first, row), self.sizes.blocks) for row in range(rows)]
        before = [self.plus(row, part.first) for row in before]
        with code.loop(part.blocks) as loop:
            blocks = [self.plus(row, loop.counter) for row in before]
            at = self.times(loop.counter, tile)
            for place, sum_ in enumerate(self._block(part, loop.counter, blocks)):
                self.store(sum_, part.memory[0], self.plus(at, place * self._units))
        with code.loop(rows) as row:
            number = self.plus(first, row.counter)
            start = self.plus(self.times(number, self.sizes.blocks), part.first)
            nothing = code.emit(splat(0.0, self._floats))
            with code.loop(part.blocks, [nothing] * len(self._vectors)) as loop:
                at = self.times(loop.counter, tile)
                at = self.plus(at, self.times(row.counter, PANEL))
                sums = [
                    self.vector(part.memory[0], self.plus(at, vector_ * self._units), self._words)
                    for vector_ in self._vectors
                ]
                block = self.plus(start, loop.counter)
                loop.carry(self._scaled(part, loop.counter, block, sums, loop.carried))
            self._add(loop.results, part, number)

    def _scaled(
        self, part: BlockRange, block: Index, row_block: Index, sums: Sums, totals: Sums
    ) -> Sums:
        """Emits a row's sums of a block, less the zero points and scaled, added to `totals`."""
        code = self.code
        start = self.repeated(code.load(self.starts, row_block), self._floats)
        factor = self.repeated(code.load(self.factors, row_block), self._floats)
        found: list[SSAValue] = []
        for vector_, sum_, total in zip(self._vectors, sums, totals, strict=True):
            at = self.plus(self.times(block, PANEL), vector_ * self._units)
            scale, *zeros = [self.vector(one, at, self._floats) for one in part.memory[2:]]
            value = self.value(sum_, start, zeros[0] if zeros else None)
            found.append(self.added_product(self.product(value, factor), scale, total))
        return found

    def _block(self, part: BlockRange, block: Index, rows: Sequence[Index]) -> Sums:
        """Emits the int8 products of a block of a panel with some rows' blocks."""
        lane_bytes = _GROUP * self._units
        data = [self.times(row, self.form.block) for row in rows]
        first = self.times(block, self.form.block * PANEL)
        weights = [self.plus(first, number * self._groups * lane_bytes) for number in self._vectors]

        def products(group: Index, sums: Sums) -> Sums:
            offset = self.times(group, lane_bytes)
            codes = [
                self.vector(part.memory[1], self.plus(at, offset), self._group_type)
                for at in weights
            ]
            numbers = (self._group(self.plus(at, self.times(group, _GROUP))) for at in data)
            return add_products(self._multiply_add, numbers, codes, sums)

        nothing = self.code.emit(whole(0, self._words))
        totals = [nothing] * (len(rows) * len(self._vectors))

        def two(pair: Index, sums: Sums) -> Sums:
            first = self.times(pair, 2)
            return products(self.plus(first, 1), products(first, sums))

        return self.in_runs(self._groups // 2, RUN // 2, totals, two)

    def _group(self, at: Index) -> SSAValue:
        """Emits four neighbouring bytes of the data, in all lanes."""
        word = VectorType(i32, [1])
        bytes_ = self.vector(self.ordered, at, VectorType(i8, [_GROUP]))
        found = self.code.emit(vector.BitcastOp(bytes_, word))
        word_ = self.code.emit(vector.ExtractOp(found, [0], i32))
        return self.code.emit(vector.BitcastOp(self.repeated(word_, self._words), self._group_type))

    def _multiply_add(self, numbers: SSAValue, codes: SSAValue, total: SSAValue) -> SSAValue:
        return self.code.emit(host.DotIntegersOp(codes, numbers, total))

    def _add(self, totals: Sums, part: BlockRange, row: Index) -> None:
        """Emits the addition of a row's sums to the output."""
        code = self.code
        fresh = code.is_zero(code.index(part.first))
        nothing = code.emit(splat(0.0, self._floats))
        for vector_, total in zip(self._vectors, totals, strict=True):
            before = vector_ * self._units
            count = code.index(self.plus(part.count, -before))
            mask = code.emit(vector.CreateMaskOp([count], VectorType(i1, [self._units])))
            start = self.plus(self.times(row, self.sizes.units), part.unit, before)
            at = [code.index(start)]
            held = code.emit(vector.MaskedLoadOp(self.output, at, mask, nothing, self._floats))
            held = code.emit(arith.SelectOp(fresh, nothing, held))
            sum_ = code.emit(arith.AddfOp(held, total))
            code.add(vector.MaskedStoreOp(self.output, at, mask, sum_))
