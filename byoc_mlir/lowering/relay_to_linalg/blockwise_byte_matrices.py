"""Kernel of many rows that are rounded to bytes, on a processor with AMX."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute

from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.relay_to_linalg.blockwise_byte_tiles import ManyRowsOfBytes
from byoc_mlir.lowering.relay_to_linalg.blockwise_tiles import BlockRange

_ROWS = 16
"""Rows that AMX multiplies at once."""


class ManyRowsByMatrices(ManyRowsOfBytes):
    """Kernel that multiplies a tile's rows of a block at once; rows that are left have vectors.

    A tile's data of a block is dense `[tile_rows, block]`. Its products go to the stack
    `[tile_rows, panel]`.
    """

    NAME = "many_by_matrices"

    @property
    def tile_rows(self) -> int:
        return _ROWS

    def held(self) -> list[tuple[Attribute, int]]:
        return [*super().held(), (i32, self.tile_rows * self.panel_units)]

    def order_data(self, first: Index, count: Index) -> None:
        self.code.add(host.RequestMatricesOp())
        super().order_data(first, count)

    def ordered_place(self, block: Index, chunk: Index, code: int) -> Index:
        emit, index, blocks = self.code.emit, self.code.index, self.sizes.blocks
        row = emit(arith.DivUIOp(index(block), index(blocks)))
        number = emit(arith.RemUIOp(index(block), index(blocks)))
        in_tile = self.code.remainder(row, self.tile_rows)
        before = self.plus(row, self.times(in_tile, -1))
        place = self.plus(self.times(before, blocks), self.times(number, self.tile_rows), in_tile)
        rows = self.code.quotient(self.sizes.rows, self.tile_rows)
        is_in_tile = emit(arith.CmpiOp(row, index(self.times(rows, self.tile_rows)), "ult"))
        place = emit(arith.SelectOp(is_in_tile, index(place), index(block)))
        return super().ordered_place(place, chunk, code)

    def _block(self, part: BlockRange, block: Index, rows: Sequence[Index]) -> Sums:
        if len(rows) < self.tile_rows:
            return super()._block(part, block, rows)
        code, steps, sums = self.code, self.form.block, part.memory[-1]
        number = self.plus(part.first, block)
        before = self.plus(rows[0], self.times(number, -1))
        data = self.times(self.plus(before, self.times(number, self.tile_rows)), steps)
        codes = self.times(block, steps * self.panel_units)
        code.add(
            host.MultiplyMatricesOp(
                (self.ordered, code.index(data)),
                (part.weights, code.index(codes)),
                (sums, code.index(0)),
                steps=steps,
                vectors=len(self.vectors),
            )
        )
        places = range(0, self.tile_rows * self.panel_units, self.unit_lanes)
        return [self.vector(sums, at, self.words) for at in places]
