"""Contractions whose `b` is stored in panels of a tile's width, as `pack-weights` does."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import SSAValue

from byoc_mlir.dims import Dim, Size
from byoc_mlir.lowering.linalg_to_loops.code import Index, Position
from byoc_mlir.lowering.linalg_to_loops.tiled import A, B, C, Columns, TiledWriter, TileRows, Tiles


class PanelWriter(TiledWriter):
    """Strategy for contractions that read panels of `b` in place."""

    def _accumulate(self, at: Position, panel: Index, lines: Index, width: Index) -> None:
        """Adds the products of all steps to a block.

        For a symbolic number of rows, the code chooses at run time between one row and more rows.
        """
        code, rows = self._code, self._it.rows
        if not isinstance(rows, Dim):
            self._add(at, panel, width)
            return
        with code.if_positive(2 - rows):
            self._add_one_row(at, width)
        with code.if_positive(rows - 1):
            self._add(at, panel, width)

    @property
    def _all_steps(self) -> Size:
        return self._nest.sizes[self._it.steps[0]]

    def _add(self, at: Position, panel: Index, width: Index) -> None:
        """Adds the products of all steps to all tiles, part by part.

        Each part of a panel of `b` is applied to all rows, and stays in the cache meanwhile.
        """
        code, steps, depth = self._code, self._all_steps, self._blocking.depth
        if not isinstance(steps, int) or steps <= depth:
            tiles = self._tiles(self._fresh(0, steps), steps)
            self._add_steps(at, panel, width, tiles, 0, steps)
            return
        with code.loop(steps, step=depth) as loop:
            first = loop.counter
            left = code.add_index(steps, code.scale_index(first, -1))
            count = depth if steps % depth == 0 else code.minimum(left, depth)
            here = at.entered(code, self._nest, self._it.steps[0], first)
            tiles = replace(self._tiles(self._fresh(first, depth), count), panel_steps=steps)
            self._add_steps(here, panel, width, tiles, first, depth)

    def _tiles(self, fresh: SSAValue | None, steps: Index) -> Tiles:
        a, b, c = (self._code.unknown_size(self._nest.accesses[n].buffer) for n in (A, B, C))
        return Tiles(fresh, a, b, self._blocking.tile.panel_columns, c, steps)

    def _add_steps(
        self, at: Position, panel: Index, width: Index, tiles: Tiles, first: Index, depth: Size
    ) -> None:
        """Adds the products of `depth` steps, from step `first` on.

        Each tile prefetches a share of the next panel, since weights are seldom in L1.
        """
        code, here = self._code, at.following([A, C])
        before = code.scale_index(first, self._blocking.tile.panel_columns)

        def column_of_tiles(columns: Columns) -> None:
            start = code.add_index(self._start_of(at, columns), before)
            shares = columns.tile.shares
            share_size = columns.tile.columns * depth // shares
            next_panel = columns.tile.columns * self._all_steps

            def tile(rows: TileRows) -> None:
                number = code.quotient(rows.first, self._blocking.tile.rows)
                share = code.scale_index(code.minimum(number, shares - 1), share_size)
                ahead = code.add_index(start, code.add_index(share, next_panel))
                self._call(tiles, self._entered_row(here, rows.first), rows, columns, start, ahead)

            self._over_rows(panel, tile)

        self._over_columns(width, column_of_tiles)

    def _add_one_row(self, at: Position, width: Index) -> None:
        code, here = self._code, at.following([A, C])
        tiles = self._tiles(self._fresh(0, self._all_steps), self._all_steps)

        def one_tile(columns: Columns) -> None:
            start = self._start_of(at, columns)
            ahead = code.add_index(start, columns.tile.columns * self._all_steps)
            self._call(tiles, here, TileRows(0, 1), columns, start, ahead)

        self._over_columns(width, one_tile, self._blocking.of_one_row)

    def _start_of(self, at: Position, columns: Columns) -> Index:
        """Returns the offset of the panel with column n, which is n * steps, since panels are
        contiguous.
        """
        first = at.counters[self._it.columns[-1]]
        return self._code.scale_index(self._code.add_index(first, columns.first), self._all_steps)
