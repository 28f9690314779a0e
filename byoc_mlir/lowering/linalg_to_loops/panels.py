"""Contractions whose `b` is stored in panels as wide as a tile: see `pack-weights`."""

from __future__ import annotations

from byoc_mlir.dims import Dim
from byoc_mlir.lowering.linalg_to_loops.code import Index, Position
from byoc_mlir.lowering.linalg_to_loops.tiled import A, B, C, Columns, TiledWriter, Tiles


class PanelWriter(TiledWriter):
    """Reads panels of `b` where they are."""

    def _accumulate(self, at: Position, panel: Index, lines: Index, width: Index) -> None:
        """All steps of a tile at once; a panel of `b` stays in the cache for all rows.

        Each tile prefetches a share of the next panel: weights are seldom in a near cache. Whether
        there is one row is asked where that is not known.
        """
        code, nest = self._code, self._nest
        steps = nest.sizes[self._it.steps[0]]
        fresh = code.boolean(self._it.fresh)
        a, b, c = (code.unknown_size(nest.accesses[n].buffer) for n in (A, B, C))
        tiles = Tiles(fresh, a, b, self._blocking.tile.panel_columns, c, steps)
        first = at.counters[self._it.columns[-1]]
        here = at.following([A, C])

        def start_of(columns: Columns) -> Index:
            # panels follow each other: column n starts n * steps elements in, n the first of one
            return code.scale_index(code.add_index(first, columns.first), steps)

        def column_of_tiles(columns: Columns) -> None:
            start = start_of(columns)
            shares = columns.tile.shares
            size = columns.tile.columns * steps

            def tile(row: Index, rows: int) -> None:
                number = code.quotient(row, self._blocking.tile.rows)
                share = code.scale_index(code.minimum(number, shares - 1), size // shares)
                ahead = code.add_index(start, code.add_index(share, size))
                self._call(tiles, self._entered_row(here, row), rows, columns, start, ahead)

            self._over_rows(panel, tile)

        def one_tile(columns: Columns) -> None:
            start = start_of(columns)
            ahead = code.add_index(start, columns.tile.columns * steps)
            self._call(tiles, here, 1, columns, start, ahead)

        rows = self._it.rows
        if not isinstance(rows, Dim):
            self._over_columns(width, column_of_tiles)
            return
        with code.if_positive(2 - rows):
            self._over_columns(width, one_tile, self._blocking.of_one_row)
        with code.if_positive(rows - 1):
            self._over_columns(width, column_of_tiles)
