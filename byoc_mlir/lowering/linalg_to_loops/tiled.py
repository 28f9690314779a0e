"""Contractions as cache-blocked and register-blocked loops.

Subclasses determine how tiles read `b`: in place or packed. Epilogues are applied while the block
is in the cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import func
from xdsl.ir import SSAValue

from byoc_mlir.dims import Dim, Size
from byoc_mlir.kernels.gemm import short_rows
from byoc_mlir.lowering.linalg_to_loops.blocking import Blocking
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter, Position
from byoc_mlir.lowering.linalg_to_loops.contraction import Contraction, ElementwiseEpilogue
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import MicroKernels, Tile
from byoc_mlir.lowering.threads import is_worth_threads

A, B, C = 0, 1, 2
"""Positions of a contraction's accesses."""


@dataclass(frozen=True)
class Tiles:
    """Parameters that all tiles of a block share."""

    fresh: SSAValue | None
    """Run-time condition for sums to start at zero; None if they always do."""
    a: SSAValue
    b: SSAValue
    b_step: Index
    """Distance between two steps."""
    c: SSAValue
    steps: Index
    panel_steps: Size | None = None
    """Number of a panel's steps, if they are computed in parts."""


@dataclass(frozen=True)
class Columns:
    """Columns of one tile: the first column in the block, and the number of valid columns if not
    all are.
    """

    tile: Tile
    first: Index
    valid: Index | None = None


@dataclass(frozen=True)
class TileRows:
    """Rows of one tile: the first row, and the number of rows that are left if the tile may have
    more.
    """

    first: Index
    count: int
    left: Index | None = None


class TiledWriter(ABC):
    """Base of the strategies for contractions: the loops around the tiles, and the epilogues."""

    def __init__(
        self, code: LoopWriter, contraction: Contraction, kernels: MicroKernels, blocking: Blocking
    ):
        self._code = code
        self._it = contraction
        self._nest = contraction.nest
        self._kernels = kernels
        self._blocking = blocking

    def write(self, cycles: float, *, threads: bool) -> None:
        """Emits the outer loops and the loops over blocks of rows and columns.

        Args:
            cycles: estimated cycles of all loops, for the hints of symbolic sizes.
            threads: true if several threads may run the loops.
        """
        sizes = [self._nest.sizes[loop] for loop in self._it.outer]
        panels = -(-self._it.rows // self._blocking.tile.rows)
        sizes.append(-(-panels // self._blocking.panels))
        steps = [1] * len(sizes)
        for loop, step in self._column_steps():
            sizes.append(self._nest.sizes[loop])
            steps.append(step)
        cut = [
            n
            for n, (size, step) in enumerate(zip(sizes, steps, strict=True))
            if isinstance(size, Dim) or size > step
        ]
        if threads and is_worth_threads([sizes[n] for n in cut], cycles):
            ends, strides = [sizes[n] for n in cut], [steps[n] for n in cut]
            with self._code.parallel(ends, strides, cycles=cycles) as counters:
                position = dict(zip(cut, counters, strict=True))
                self._block([position.get(n, 0) for n in range(len(sizes))])
        else:
            self._sequential(sizes, steps, ())

    def _sequential(
        self, sizes: Sequence[Size], steps: Sequence[int], counters: tuple[Index, ...]
    ) -> None:
        done = len(counters)
        if done == len(sizes):
            self._block(counters)
            return
        size = sizes[done]
        if isinstance(size, int) and size <= steps[done]:
            self._sequential(sizes, steps, (*counters, 0))
        else:
            with self._code.loop(size, step=steps[done]) as loop:
                self._sequential(sizes, steps, (*counters, loop.counter))

    def _column_steps(self) -> list[tuple[int, int]]:
        """Returns the loops over columns, each with the extent of a block in it."""
        blocking = self._blocking
        if len(self._it.columns) == 1:
            return [(self._it.columns[0], blocking.width)]
        outer, inner = self._it.columns
        return [(outer, blocking.lines), (inner, blocking.width)]

    def _block(self, counters: Sequence[Index]) -> None:
        """Emits one block: several panels of rows times several columns."""
        code, it, blocking = self._code, self._it, self._blocking
        at = Position.start(self._nest)
        for loop, counter in zip(it.outer, counters, strict=False):
            at = at.entered(code, self._nest, loop, counter)
        extents: list[Index] = []
        starts = counters[len(it.outer) + 1 :]
        for (loop, step), first in zip(self._column_steps(), starts, strict=True):
            at = at.entered(code, self._nest, loop, first)
            left = code.add_index(self._nest.sizes[loop], code.scale_index(first, -1))
            whole = self._nest.sizes[loop] % step == 0
            extents.append(step if whole else code.minimum(left, step))
        lines: Index = extents[0] if len(extents) == 2 else 1
        panel = code.scale_index(counters[len(it.outer)], blocking.panels)
        self._accumulate(at, panel, lines, extents[-1])
        for epilogue in it.epilogues:
            self._apply(epilogue, at, panel, self._code.product(lines, extents[-1]))

    def _rows(self, panel: Index) -> tuple[Index, Index]:
        """Returns the first row of the block, and the row after the last one."""
        code, rows = self._code, self._blocking.tile.rows
        first = code.scale_index(panel, rows)
        after = code.add_index(first, self._blocking.panels * rows)
        return first, code.minimum(after, self._it.rows)

    def _fresh(self, first: Index, depth: Size) -> SSAValue | None:
        """Returns the condition for sums to start at zero, for `depth` steps from `first` on.

        None if they always start at zero.
        """
        if not self._it.fresh:
            return self._code.boolean(False)
        is_whole = depth == self._nest.sizes[self._it.steps[0]]
        return None if is_whole else self._code.is_zero(self._code.index(first))

    def _entered_row(self, at: Position, counter: Index) -> Position:
        if self._it.row is None:
            return at
        return at.entered(self._code, self._nest, self._it.row, counter)

    def _row_distance(self, access: int) -> Size:
        return 0 if self._it.row is None else self._nest.accesses[access].coefficients[self._it.row]

    @abstractmethod
    def _accumulate(self, at: Position, panel: Index, lines: Index, width: Index) -> None:
        """Adds the products of all steps to a block of `lines * width` columns."""

    def _over_rows(self, panel: Index, body: Callable[[TileRows], None]) -> None:
        """Runs `body` on the rows of each tile of the block."""
        code, tile = self._code, self._blocking.tile
        first, after = self._rows(panel)
        rest = self._it.rows % tile.rows
        if isinstance(rest, Dim):
            self._over_any_rows(first, after, body)
            return
        whole = code.minimum(after, self._it.rows - rest)
        with code.loop(whole, start=first, step=tile.rows) as loop:
            body(TileRows(loop.counter, tile.rows))
        if not rest:
            return
        with code.if_positive(code.add_index(after, -(self._it.rows - rest))):
            body(TileRows(self._it.rows - rest, rest))

    @property
    def _short_rows(self) -> int:
        """Returns the rows of tiles for the rest of a symbolic number of rows."""
        return short_rows(self._blocking.tile.vectors)

    def _over_any_rows(self, first: Index, after: Index, body: Callable[[TileRows], None]) -> None:
        """Runs `body` like `_over_rows`, for a symbolic number of rows."""
        code, rows, short = self._code, self._blocking.tile.rows, self._short_rows
        count = code.add_index(after, code.scale_index(first, -1))
        rest = code.remainder(count, rows)
        whole = code.add_index(after, code.scale_index(rest, -1))
        with code.loop(whole, start=first, step=rows) as loop:
            body(TileRows(loop.counter, rows))
        with code.loop(after, start=whole, step=short) as loop:
            left = code.add_index(after, code.scale_index(loop.counter, -1))
            body(TileRows(loop.counter, short, left))

    def _over_columns(
        self, columns: Index, body: Callable[[Columns], None], blocking: Blocking | None = None
    ) -> None:
        """Runs `body` on the columns of each tile of the block.

        Args:
            blocking: blocking with other tiles; by default, the block's own.
        """
        code, tiles = self._code, (blocking or self._blocking).column_tiles
        whole, rest = 0, columns
        for tile in tiles:
            first: Index = whole
            count = code.scale_index(code.quotient(rest, tile.columns), tile.columns)
            whole = code.add_index(first, count)
            with code.loop(whole, start=first, step=tile.columns) as loop:
                body(Columns(tile, loop.counter))
            rest = code.add_index(columns, code.scale_index(whole, -1))
            if rest == 0:
                return
        with code.if_positive(rest):
            body(Columns(replace(tiles[-1], masked=True), whole, rest))

    def _call(
        self,
        tiles: Tiles,
        at: Position,
        rows: TileRows,
        columns: Columns,
        b_start: Index,
        ahead: Index | None = None,
    ) -> None:
        """Calls the micro-kernel for one tile; `at` is a position in the tile's first row.

        Args:
            ahead: offset in `b` to prefetch; by default, the offset that the tile reads.
        """
        code, accesses = self._code, self._nest.accesses
        a_row, c_row = (self._row_distance(n) for n in (A, C))
        a_step = accesses[A].coefficients[self._it.steps[-1]]
        c_start = code.add_index(at.indices[C], columns.first)
        panel = tiles.b_step == columns.tile.panel_columns
        is_wide = columns.tile.columns > columns.tile.panel_columns
        whole = [] if tiles.panel_steps is None or not is_wide else [tiles.panel_steps]
        fresh = [] if tiles.fresh is None else [tiles.fresh]
        tile = replace(
            columns.tile,
            rows=rows.count,
            clamped=rows.left is not None,
            strided=a_step != 1,
            panel=panel,
            parted=bool(whole),
            fresh=not fresh,
        )
        arguments: list[Index] = [
            *(*fresh, tiles.a, at.indices[A], a_row, *[a_step] * tile.strided),
            *(tiles.b, b_start, *[tiles.b_step] * (not panel), *whole),
            *(tiles.c, c_start, c_row, tiles.steps, b_start if ahead is None else ahead),
        ]
        arguments += [one for one in (rows.left, columns.valid) if one is not None]
        values = [code.index(argument) for argument in arguments]
        code.add(func.CallOp(self._kernels.symbol(tile), values, []))

    def _apply(
        self, epilogue: ElementwiseEpilogue, at: Position, panel: Index, columns: Index
    ) -> None:
        """Applies an epilogue to the block, which is still in the cache."""
        code, nest = self._code, self._nest
        *inputs, output = epilogue.accesses
        first, after = self._rows(panel)
        at = at.following((*epilogue.accesses, C))
        with code.loop(after, start=first) as rows:
            row = self._entered_row(at, rows.counter)
            with code.loop(columns) as loop:
                here = row.entered(code, nest, self._it.columns[-1], loop.counter)
                values = [
                    code.load(nest.accesses[n].buffer, here.indices[n]) if arg.first_use else arg
                    for n, arg in zip(inputs, epilogue.body.args, strict=False)
                ]
                current = code.load(nest.accesses[output].buffer, here.indices[output])
                (result,) = code.inline(epilogue.body, [*values, current])
                code.store(result, nest.accesses[C].buffer, here.indices[C])
