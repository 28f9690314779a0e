"""Contractions of few rows whose operands are both contiguous along K, the steps.

A transposed matrix has this layout, such as the weights of most dense layers. If there are few
rows, it is read in place, since packing would take longer than the GEMM.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, func
from xdsl.ir import SSAValue

from byoc_mlir.lowering.linalg_to_loops.code import Index, Position
from byoc_mlir.lowering.linalg_to_loops.line_kernels import LineTile
from byoc_mlir.lowering.linalg_to_loops.tiled import A, B, C, TiledWriter, TileRows


class LineWriter(TiledWriter):
    """Strategy for contractions that read `a` and `b` in place."""

    def _accumulate(self, at: Position, panel: Index, lines: Index, width: Index) -> None:
        """Adds the products of all steps to each tile.

        The tile's columns of `b` stay in L1 for all rows.
        """
        code, nest = self._code, self._nest

        def columns_of_tiles(columns: Index, width: int) -> None:
            here = at.entered(code, nest, self._it.columns[0], columns)
            self._over_rows(panel, lambda rows: self._call_lines(here, rows, width))

        self._over_lines(width, columns_of_tiles)

    def _over_lines(self, width: Index, body: Callable[[Index, int], None]) -> None:
        """Runs `body` on the first column of each tile, with the tile's number of columns."""
        code = self._code
        columns = LineTile.columns_for(self._blocking.tile.rows)
        whole = code.scale_index(code.quotient(width, columns), columns)
        with code.loop(whole, step=columns) as loop:
            body(loop.counter, columns)
        rest = code.add_index(width, code.scale_index(whole, -1))
        if not isinstance(rest, int):
            with code.loop(width, start=whole) as loop:
                body(loop.counter, 1)
        elif rest:
            body(whole, rest)

    @property
    def _short_rows(self) -> int:
        return 1

    def _call_lines(self, at: Position, rows: TileRows, columns: int) -> None:
        """Calls the kernel of one tile; the tiles of the first rows prefetch the next columns."""
        code, accesses, tile = self._code, self._nest.accesses, self._blocking.tile
        row = rows.first
        here = self._entered_row(at, row)
        a_row, c_row = (self._row_distance(n) for n in (A, C))
        column = accesses[B].coefficients[self._it.columns[0]]
        ahead = code.add_index(at.indices[B], code.scale_index(column, columns))
        if isinstance(row, SSAValue):
            is_first = code.is_zero(row)
            after, again = code.index(ahead), code.index(at.indices[B])
            ahead = code.emit(arith.SelectOp(is_first, after, again))
        steps = self._nest.sizes[self._it.steps[0]]
        a, b, c = (code.unknown_size(accesses[n].buffer) for n in (A, B, C))
        arguments = [
            code.boolean(self._it.fresh),
            a,
            *(code.index(n) for n in (here.indices[A], a_row)),
            b,
            *(code.index(n) for n in (here.indices[B], column)),
            c,
            *(code.index(n) for n in (here.indices[C], c_row, steps, ahead)),
        ]
        kernel = LineTile(rows.count, columns, tile.lanes, tile.element)
        code.add(func.CallOp(self._kernels.symbol(kernel), arguments, []))
