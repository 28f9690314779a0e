"""Sizes of the blocks and tiles of contractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import FixedBitwidthType

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size
from byoc_mlir.lowering.linalg_to_loops.contraction import Contraction
from byoc_mlir.lowering.linalg_to_loops.line_kernels import LINE_ROWS, LineTile
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import TILE_VECTORS, Tile, tile_lanes

_C = 2
_PACKED_BYTES = 1 << 17
"""Bytes of a packed block: a part of L2."""
_ROW_BYTES = 1 << 18
"""Bytes of `a` that are read again for each panel of `b` of a block: a part of L2."""
_PANEL_BYTES = 1 << 16
"""Bytes of a panel of `b` that are read for all rows of a block: a part of L2."""
_MOST_ROW_COLUMNS = 256
"""Maximum length of a row of columns for which blocks consist of whole rows."""
_PARALLEL_BLOCKS = 4
_LARGE = 1 << 12
_VECTORS_OF_ROWS = {1: 8, 2: 4, 3: 4}
"""Vectors of a tile by its number of rows: few rows are bound by memory, and more vectors read from
several addresses at once."""
_MANY_REGISTERS_BITS = 512
"""Minimum vector width with 32 registers, which hold the sums of more than two vectors a row: as
many MACs for fewer loads."""
_WIDE_VECTORS, _WIDE_ROWS = 4, 6


@dataclass(frozen=True)
class Wanted:
    """Preferred parameters of a block and its tiles, where sizes allow them."""

    rows: int = 6
    """Rows of the largest tile."""
    columns: int = 128
    """Approximate columns of a block."""

    @staticmethod
    def of(schedule: str) -> Wanted:
        """Returns the parameters of a schedule such as `columns=256`.

        An empty schedule has the default parameters.

        Raises:
            ValueError, TypeError: the schedule has another form.
        """
        name, _, number = schedule.partition("=")
        return Wanted(**{name: int(number)}) if schedule else Wanted()


PRODUCT_SCHEDULES = ("columns=256", "rows=8", "columns=64", "rows=12")
"""Schedules of contractions that tuning tries."""


@dataclass(frozen=True)
class Blocking:
    """Blocking of a contraction: a block has `lines` times `width` columns and `depth` outer
    steps.
    """

    tile: Tile
    lines: int
    width: int
    depth: int
    panels: int
    """Panels of `tile.rows` rows in a block."""

    @property
    def columns(self) -> int:
        """Returns the columns of a full block."""
        return self.lines * self.width

    def whole_rows(self, rows: Size) -> int:
        """Returns the number of rows; if it is symbolic, that of whole blocks."""
        if isinstance(rows, int):
            return rows
        block = self.panels * self.tile.rows
        return -(-hint(rows) // block) * block

    @property
    def column_tiles(self) -> Sequence[Tile]:
        """Returns the tiles for the columns of a block: full tiles first, then narrower ones for
        the rest.
        """
        usual = replace(self.tile, vectors=TILE_VECTORS)
        return (usual,) if self.tile == usual else (self.tile, usual)

    @property
    def of_one_row(self) -> Blocking:
        """Returns the same blocks, with tiles of one row."""
        return replace(self, tile=_reading_panels(replace(self.tile, rows=1)))

    @property
    def stride(self) -> int:
        """Returns the distance between two steps in the packed block."""
        return _round_up(self.columns, self.tile.columns)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _planned(size: Size) -> int:
    """Returns the size for which blocks are chosen; a symbolic size is assumed to be large."""
    return size if isinstance(size, int) else _LARGE


def choose_blocking(
    contraction: Contraction, vector_bits: int, wanted: Wanted, *, threads: bool
) -> Blocking:
    """Chooses block sizes for the machine's vectors."""
    nest = contraction.nest
    tile = _tile(contraction, vector_bits, wanted)
    element, rows = tile.element, tile.rows
    lines, width = _block_columns(contraction, tile.columns, wanted, threads=threads)
    inner_steps = math.prod(_planned(nest.sizes[loop]) for loop in contraction.steps[1:])
    capacity = _PACKED_BYTES // element.size // _round_up(lines * width, tile.columns)
    outer_steps = _planned(nest.sizes[contraction.steps[0]])
    blocks = -(-outer_steps // max(1, capacity // inner_steps))
    panels = -(-_planned(contraction.rows) // rows)
    row_blocks = _row_blocks(contraction, lines, width, panels) if threads else 1
    return Blocking(tile, lines, width, -(-outer_steps // blocks), -(-panels // row_blocks))


def panel_blocking(
    contraction: Contraction, vector_bits: int, wanted: Wanted, *, threads: bool
) -> Blocking:
    """Chooses block sizes for `b` stored in panels.

    The steps of a panel and the rows of a block fit in the cache. If only one panel of rows reads
    `b`, a block has all steps.
    """
    tile = _reading_panels(_tile(contraction, vector_bits, wanted))
    lines, width = _block_columns(contraction, tile.columns, wanted, threads=threads)
    steps = _planned(contraction.nest.sizes[contraction.steps[0]])
    panels = -(-_planned(contraction.rows) // tile.rows)
    depth = steps
    if panels > 1:
        most = _PANEL_BYTES // (tile.element.size * tile.panel_columns)
        depth = -(-steps // -(-steps // most))
    fitting = max(1, _ROW_BYTES // (tile.element.size * depth * tile.rows))
    row_blocks = -(-panels // fitting)
    if threads:
        row_blocks = max(row_blocks, _row_blocks(contraction, lines, width, panels))
    return Blocking(tile, lines, width, depth, -(-panels // row_blocks))


def line_blocking(
    contraction: Contraction, vector_bits: int, wanted: Wanted, *, threads: bool
) -> Blocking:
    """Chooses block sizes for `b` read in rows: one block has all steps and all rows."""
    tile = _tile(contraction, vector_bits, replace(wanted, rows=LINE_ROWS))
    columns = LineTile.columns_for(tile.rows)
    lines, width = _block_columns(contraction, columns, wanted, threads=threads)
    steps = _planned(contraction.nest.sizes[contraction.steps[0]])
    return Blocking(tile, lines, width, steps, -(-_planned(contraction.rows) // tile.rows))


def _reading_panels(tile: Tile) -> Tile:
    """Returns the tile with more vectors, if it has few rows or enough registers for the sums."""
    is_wide = tile.lanes * tile.element.bitwidth >= _MANY_REGISTERS_BITS and tile.rows <= _WIDE_ROWS
    usual = _WIDE_VECTORS if is_wide else tile.vectors
    return replace(tile, vectors=_VECTORS_OF_ROWS.get(tile.rows, usual))


def _tile(contraction: Contraction, vector_bits: int, wanted: Wanted) -> Tile:
    element = contraction.nest.accesses[_C].element_type
    assert isinstance(element, FixedBitwidthType)
    rows = min(wanted.rows, _planned(contraction.rows))
    return Tile(rows, tile_lanes(element, vector_bits), element, masked=False)


def _row_blocks(contraction: Contraction, lines: int, width: int, panels: int) -> int:
    """Returns the number of blocks of rows, so that each thread has a block."""
    count = _column_blocks(contraction, lines, width)
    for loop in contraction.outer:
        count *= _planned(contraction.nest.sizes[loop])
    return min(panels, -(-_PARALLEL_BLOCKS // count))


def _block_columns(
    contraction: Contraction, multiple: int, wanted: Wanted, *, threads: bool
) -> tuple[int, int]:
    sizes = [_planned(contraction.nest.sizes[loop]) for loop in contraction.columns]
    width = sizes[-1]
    if len(sizes) == 1 or width > _MOST_ROW_COLUMNS:
        blocks = max(1, round(width / wanted.columns))
        if threads and blocks > 1:  # equal shares for the threads
            blocks = _round_up(blocks, _PARALLEL_BLOCKS)
        return 1, min(width, _round_up(-(-width // blocks), multiple))

    def cost(lines: int) -> float:
        columns = lines * width
        blocks = -(-sizes[0] // lines)
        waste = blocks * _round_up(columns, multiple) / (sizes[0] * width)
        return waste + 0.1 * abs(columns - wanted.columns) / wanted.columns

    most = max(1, min(sizes[0], 2 * wanted.columns // width))
    return min(range(1, most + 1), key=cost), width


def _column_blocks(contraction: Contraction, lines: int, width: int) -> int:
    sizes = [_planned(contraction.nest.sizes[loop]) for loop in contraction.columns]
    along = -(-sizes[-1] // width)
    return along * (-(-sizes[0] // lines) if len(sizes) == 2 else 1)
