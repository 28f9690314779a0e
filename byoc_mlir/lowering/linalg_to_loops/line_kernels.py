"""Micro-kernels of GEMMs whose operands are both contiguous along K, the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from xdsl.dialects import arith, func, memref, vector
from xdsl.dialects.builtin import FixedBitwidthType, IndexType, VectorType, i1
from xdsl.ir import SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import (
    LINE_BYTES,
    buffer_type,
    splat,
    tile_function,
)
from byoc_mlir.lowering.relay_to_linalg.scalars import REASSOCIATE, multiply_add

_INDEX = IndexType()
_SUMS = 12
"""Maximum number of a tile's sums: as many as fit in 16 registers in addition to the operands."""
_UNROLLED = 2
LINE_ROWS = 4
"""Rows of the largest tile."""
_ADD = vector.CombiningKindAttr(vector.CombiningKindFlag.ADD)


@dataclass(frozen=True)
class LineTile:
    """Tile of a result: `rows` times `columns` dot products, computed `lanes` steps at a time."""

    rows: int
    columns: int
    lanes: int
    element: FixedBitwidthType

    @staticmethod
    def columns_for(rows: int) -> int:
        """Returns the number of columns of a full tile with this many rows."""
        return _SUMS // rows

    @property
    def name(self) -> str:
        """Returns the name of the function."""
        return f"lines_{self.rows}x{self.columns}_{self.element}"

    def function(self) -> func.FuncOp:
        """Returns the kernel.

        ```
        @lines(%fresh, %a, %a_start, %a_row, %b, %b_start, %b_column,
               %c, %c_start, %c_row, %steps, %ahead):
            c[c_start + i * c_row + j] = (fresh ? 0 : the same element) + sum over k < steps of
                a[a_start + i * a_row + k] * b[b_start + j * b_column + k]
        ```

        It also prefetches the same number of columns of `b`, from `ahead` on.
        """
        return _function(self).clone()


@lru_cache(maxsize=64)
def _function(tile: LineTile) -> func.FuncOp:
    buffer = buffer_type(tile.element)
    types = [i1, buffer, _INDEX, _INDEX, buffer, _INDEX, _INDEX, buffer, *[_INDEX] * 4]
    return tile_function(tile.name, types, lambda code, args: _LineCode(tile, code, args).write())


class _LineCode:
    def __init__(self, tile: LineTile, code: LoopWriter, args: Sequence[SSAValue]):
        self._tile = tile
        self._code = code
        self._type = VectorType(tile.element, [tile.lanes])
        self._fresh, self._a, a_start, a_row = args[:4]
        self._b, b_start, b_column, self._c, c_start, c_row, self._steps, ahead = args[4:]
        self._rows = self._starts(a_start, a_row, tile.rows)
        self._columns = self._starts(b_start, b_column, tile.columns)
        self._next_columns = self._starts(ahead, b_column, tile.columns)
        self._results = self._starts(c_start, c_row, tile.rows)

    def write(self) -> None:
        """Emits sums over whole vectors of steps, over the remainder, and over lanes."""
        code, lanes = self._code, self._tile.lanes
        zero = code.emit(splat(0.0, self._type))
        sums = [zero] * (self._tile.rows * self._tile.columns)
        chunk = _UNROLLED * lanes
        whole = code.scale_index(code.quotient(self._steps, chunk), chunk)
        with code.loop(whole, sums, step=chunk) as loop:
            self._prefetch(loop.counter, chunk)
            carried = loop.carried
            for number in range(_UNROLLED):
                at = code.index(code.add_index(loop.counter, number * lanes))
                carried = self._step(at, carried, None)
            loop.carry(carried)
        with code.loop(self._steps, loop.results, start=whole, step=lanes) as rest:
            left = code.emit(arith.SubiOp(self._steps, rest.counter))
            mask = code.emit(vector.CreateMaskOp([left], VectorType(i1, [lanes])))
            rest.carry(self._step(rest.counter, rest.carried, (mask, zero)))
        totals = iter(rest.results)
        for start in self._results:
            for column in range(self._tile.columns):
                self._store(next(totals), code.add_index(start, column))

    def _starts(self, first: SSAValue, distance: SSAValue, count: int) -> list[Index]:
        code = self._code
        shifts = [code.scale_index(distance, number) for number in range(count)]
        return [code.add_index(first, shift) for shift in shifts]

    def _step(self, at: SSAValue, sums: Sums, masked: tuple[SSAValue, SSAValue] | None) -> Sums:
        columns = [self._load(self._b, start, at, masked) for start in self._columns]
        rows = (self._load(self._a, start, at, masked) for start in self._rows)
        return add_products(partial(multiply_add, self._code.emit), rows, columns, sums)

    def _prefetch(self, at: SSAValue, chunk: int) -> None:
        """Emits the prefetches of as many bytes as a chunk of steps reads."""
        code, line = self._code, LINE_BYTES // self._tile.element.size
        for start in self._next_columns:
            for shift in range(0, chunk, line):
                place = code.add_index(code.add_index(start, at), shift)
                code.add(host.PrefetchOp(self._b, code.index(place)))

    def _load(
        self,
        buffer: SSAValue,
        start: Index,
        at: SSAValue,
        masked: tuple[SSAValue, SSAValue] | None,
    ) -> SSAValue:
        place = self._code.index(self._code.add_index(start, at))
        if masked is None:
            return self._code.emit(vector.LoadOp(buffer, [place], self._type))
        return self._code.emit(vector.MaskedLoadOp(buffer, [place], *masked, self._type))

    def _store(self, sums: SSAValue, place: Index) -> None:
        code, at = self._code, self._code.index(place)
        total = code.emit(
            vector.ReductionOp.create(
                operands=[sums],
                result_types=[self._tile.element],
                properties={"kind": _ADD, "fastmath": REASSOCIATE},
            )
        )
        held = code.emit(memref.LoadOp.get(self._c, [at]))
        added = code.emit(arith.AddfOp(held, total))
        result = code.emit(arith.SelectOp(self._fresh, total, added))
        code.add(memref.StoreOp.get(result, self._c, [at]))
