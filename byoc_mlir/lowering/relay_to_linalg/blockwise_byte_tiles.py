"""Kernel of many rows that are rounded to bytes, by blockwise quantised weights."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import VectorType, f32, i8, i32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_bytes import RUN, RoundedRows
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import GROUP
from byoc_mlir.lowering.relay_to_linalg.blockwise_tiles import BlockRange, ManyRows


class ManyRowsOfBytes(RoundedRows, ManyRows):
    """Kernel for many rows of data that is rounded to bytes.

    On the stack are codes as bytes `[blocks, vectors of units, groups, lanes, 4]` instead of
    weights, and a tile's totals `[tile_rows, panel]`.
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

    def scratch(self) -> tuple[Attribute, int]:
        return f32, self.tile_rows * self.panel_units

    def totals_in(self, part: BlockRange) -> SSAValue:
        """Returns the memory for a tile's totals."""
        return part.memory[1 + len(self.factors_in_blocks)]

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
        code, totals = self.code, self.totals_in(part)
        numbers = [self.plus(first, row) for row in range(rows)]
        starts = [self.plus(self.times(row, self.sizes.blocks), part.first) for row in numbers]
        places = range(0, rows * self.panel_units, self.unit_lanes)
        nothing = code.emit(splat(0.0, self.floats))
        for at in places:
            self.store(nothing, totals, at)
        with code.loop(part.blocks) as loop:
            blocks = [self.plus(start, loop.counter) for start in starts]
            sums = self._block(part, loop.counter, blocks)
            scaled = self._scaled(part, loop.counter, blocks, sums)
            for at, (value, scale) in zip(places, scaled, strict=True):
                total = self.vector(totals, at, self.floats)
                self.store(self.added_product(value, scale, total), totals, at)
        found = [self.vector(totals, at, self.floats) for at in places]
        self.add_to_output(found, part, numbers)

    def _scaled(
        self, part: BlockRange, block: Index, rows: Sequence[Index], sums: Sums
    ) -> Generator[tuple[SSAValue, SSAValue]]:
        """Emits each sum of a block less the zero points, each when it is requested, with the
        scales.

        Args:
            block: number of the block in `part`.
            rows: numbers of the block in each row.
        """
        offsets = [number * self.unit_lanes for number in self.vectors]
        at = self.times(block, self.panel_units)
        units = [self.factors_of(part, self.plus(at, offset)) for offset in offsets]
        left = iter(sums)
        for row in rows:
            start = self.repeated(self.code.load(self.starts, row), self.floats)
            factor = self.repeated(self.code.load(self.factors, row), self.floats)
            for scale, *zeros in units:
                yield self.value(next(left), factor, start, zeros[0] if zeros else None), scale

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
