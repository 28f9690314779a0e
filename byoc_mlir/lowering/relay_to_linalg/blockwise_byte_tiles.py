"""Kernel of many rows that are rounded to bytes, by blockwise quantised weights."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType, i8, i32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_bytes import RUN, RoundedRows
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import GROUP
from byoc_mlir.lowering.relay_to_linalg.blockwise_tiles import BlockRange, ManyRows

_SCALED_ROWS = (1, 2, 3)
"""Numbers of rows whose sums are scaled together, so that additions do not wait for each other."""


class ManyRowsOfBytes(RoundedRows, ManyRows):
    """Kernel for many rows of data that is rounded to bytes.

    On the stack are codes as bytes `[blocks, vectors of units, groups, lanes, 4]` instead of
    weights, and a tile's sums `[blocks, tile_rows, panel]`.
    """

    NAME = "many_of_bytes"
    UNPACKED = i8
    UNPACKED_BYTES = 2**15

    @property
    def _groups(self) -> int:
        return self.form.block // GROUP

    @property
    def _group_type(self) -> VectorType:
        return VectorType(i8, [GROUP * self.unit_lanes])

    @property
    def tile_sums(self) -> int:
        """Returns the number of sums of a tile."""
        return self.tile_rows * self.panel_units

    def scratch(self) -> tuple[Attribute, int]:
        return i32, self.tile_sums * self.most_blocks

    def unpack_codes(self, part: BlockRange, blocks: Sequence[Index], block: Index) -> None:
        form, lane_bytes = self.form, GROUP * self.unit_lanes
        size = self.chunk_bytes // GROUP * lane_bytes

        def unpacked(chunk: Index, sums: Sums) -> Sums:
            before = self.times(chunk, size * form.codes)
            for number in self.vectors:
                unit = self.plus(self.times(block, self.panel_units), number * self.unit_lanes)
                first = self.plus(self.times(unit, form.block), before)
                for place, word in enumerate(self.words_of(blocks, chunk, number)):
                    bytes_ = self.code.emit(vector.BitcastOp(word, self._group_type))
                    for offset, codes in enumerate(self.codes_in(bytes_)):
                        at = self.plus(first, offset * size + place * lane_bytes)
                        self.store(codes, part.weights, at)
            return sums

        self.over_chunks([], unpacked)

    def multiply(self, part: BlockRange, first: Index, rows: int) -> None:
        code, tile = self.code, self.tile_sums
        before = [self.times(self.plus(first, row), self.sizes.blocks) for row in range(rows)]
        before = [self.plus(row, part.first) for row in before]
        with code.loop(part.blocks) as loop:
            blocks = [self.plus(row, loop.counter) for row in before]
            at = self.times(loop.counter, tile)
            for place, sum_ in enumerate(self._block(part, loop.counter, blocks)):
                self.store(sum_, part.memory[-1], self.plus(at, place * self.unit_lanes))
        some = max(count for count in _SCALED_ROWS if rows % count == 0)
        with code.loop(rows, step=some) as row:
            places = [self.plus(row.counter, number) for number in range(some)]
            numbers = [self.plus(first, place) for place in places]
            nothing = code.emit(splat(0.0, self.floats))
            with code.loop(part.blocks, [nothing] * (some * len(self.vectors))) as loop:
                loop.carry(self._scaled(part, loop.counter, places, numbers, loop.carried))
            self.add_to_output(loop.results, part, numbers)

    def _scaled(
        self,
        part: BlockRange,
        block: Index,
        places: Sequence[Index],
        rows: Sequence[Index],
        totals: Sums,
    ) -> Sums:
        """Emits some rows' sums of a block, less the zero points and scaled, added to `totals`.

        Args:
            block: number of the block in `part`.
            places: numbers of the rows in their tile.
            rows: numbers of the rows.
        """
        code, scratch = self.code, part.memory[-1]
        offsets = [number * self.unit_lanes for number in self.vectors]
        at = self.times(block, self.panel_units)
        factors = [self.factors_of(part, self.plus(at, offset)) for offset in offsets]
        found: list[SSAValue] = []
        for place, row in zip(places, rows, strict=True):
            row_block = self.plus(self.times(row, self.sizes.blocks), part.first, block)
            start = self.repeated(code.load(self.starts, row_block), self.floats)
            factor = self.repeated(code.load(self.factors, row_block), self.floats)
            at = self.times(block, self.tile_sums)
            at = self.plus(at, self.times(place, self.panel_units))
            for offset, (scale, *zeros) in zip(offsets, factors, strict=True):
                sum_ = self.vector(scratch, self.plus(at, offset), self.words)
                value = self.value(sum_, factor, start, zeros[0] if zeros else None)
                found.append(self.added_product(value, scale, totals[len(found)]))
        return found

    def _block(self, part: BlockRange, block: Index, rows: Sequence[Index]) -> Sums:
        """Emits the int8 products of a block of a panel with some rows' blocks."""
        lane_bytes = GROUP * self.unit_lanes
        data = [self.times(row, self.form.block) for row in rows]
        first = self.times(block, self.form.block * self.panel_units)
        weights = [self.plus(first, number * self._groups * lane_bytes) for number in self.vectors]

        def products(group: Index, sums: Sums) -> Sums:
            offset = self.times(group, lane_bytes)
            codes = [
                self.vector(part.weights, self.plus(at, offset), self._group_type) for at in weights
            ]
            numbers = (self._group(self.plus(at, self.times(group, GROUP))) for at in data)
            return add_products(self._multiply_add, numbers, codes, sums)

        nothing = self.code.emit(splat(0, self.words))
        totals = [nothing] * (len(rows) * len(self.vectors))

        return self.in_runs(self._groups, RUN, totals, products)

    def _group(self, at: Index) -> SSAValue:
        """Emits four neighbouring bytes of the data, in all lanes."""
        word = VectorType(i32, [1])
        bytes_ = self.vector(self.ordered, at, VectorType(i8, [GROUP]))
        found = self.code.emit(vector.BitcastOp(bytes_, word))
        word_ = self.code.emit(vector.ExtractOp(found, [0], i32))
        return self.code.emit(vector.BitcastOp(self.repeated(word_, self.words), self._group_type))

    def _multiply_add(self, numbers: SSAValue, codes: SSAValue, total: SSAValue) -> SSAValue:
        return self.code.emit(host.DotIntegersOp(codes, numbers, total))
