"""Contractions as packed, cache-blocked and register-blocked loops.

A block of columns of `b` is packed into a buffer on the stack, row by row of its steps: for a
convolution that is where windows become a matrix. Micro-kernels then run over the tiles of the
block, and what follows the contraction is applied while the block is in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, func, memref, vector
from xdsl.dialects.builtin import FixedBitwidthType
from xdsl.ir import SSAValue

from byoc_mlir.lowering.linalg_to_loops.code import Code, Index, Position
from byoc_mlir.lowering.linalg_to_loops.contraction import Contraction, Epilogue
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import MicroKernels, Tile
from byoc_mlir.lowering.linalg_to_loops.simple import PARALLEL_WORK

_A, _B, _C = 0, 1, 2
_PACKED_BYTES = 1 << 17
"""A packed block: a part of the second-level cache."""
_BLOCK_COLUMNS = 128
_MOST_ROW_COLUMNS = 256
"""Longest row of columns of which only whole ones are put in a block."""
_LARGEST_TILE_ROWS = 6
_UNROLLED_VECTORS = 8
_PARALLEL_BLOCKS = 4


@dataclass(frozen=True)
class Blocking:
    """How a contraction is cut: `lines` times `width` columns and `depth` outer steps a block."""

    tile: Tile
    lines: int
    width: int
    depth: int
    panels: int
    """Row panels (of `tile.rows` rows) a block."""

    @property
    def columns(self) -> int:
        """The columns of a full block."""
        return self.lines * self.width

    @property
    def stride(self) -> int:
        """The distance of two steps in the packed block."""
        return _round_up(self.columns, self.tile.columns)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def choose_blocking(contraction: Contraction, vector_bits: int, *, threads: bool) -> Blocking:
    """Block sizes for the machine's vectors; all sizes are known, so none is left to chance."""
    nest = contraction.nest
    element = nest.accesses[_C].element_type
    assert isinstance(element, FixedBitwidthType)
    lanes = max(2, vector_bits // element.bitwidth)
    rows = min(_LARGEST_TILE_ROWS, contraction.rows)
    tile = Tile(rows, 2, lanes, element, masked=False)
    lines, width = _block_columns(contraction, tile.columns)
    inner_steps = math.prod(nest.sizes[loop] for loop in contraction.steps[1:])
    capacity = _PACKED_BYTES // element.size // _round_up(lines * width, tile.columns)
    outer_steps = nest.sizes[contraction.steps[0]]
    blocks = -(-outer_steps // max(1, capacity // inner_steps))
    panels = -(-contraction.rows // rows)
    count = _column_blocks(contraction, lines, width)
    for loop in contraction.outer:
        count *= nest.sizes[loop]
    row_blocks = min(panels, -(-_PARALLEL_BLOCKS // count)) if threads else 1
    return Blocking(tile, lines, width, -(-outer_steps // blocks), -(-panels // row_blocks))


def _block_columns(contraction: Contraction, multiple: int) -> tuple[int, int]:
    sizes = [contraction.nest.sizes[loop] for loop in contraction.columns]
    width = sizes[-1]
    if len(sizes) == 1 or width > _MOST_ROW_COLUMNS:
        blocks = max(1, round(width / _BLOCK_COLUMNS))
        return 1, min(width, _round_up(-(-width // blocks), multiple))

    def cost(lines: int) -> float:
        columns = lines * width
        blocks = -(-sizes[0] // lines)
        waste = blocks * _round_up(columns, multiple) / (sizes[0] * width)
        return waste + 0.1 * abs(columns - _BLOCK_COLUMNS) / _BLOCK_COLUMNS

    most = max(1, min(sizes[0], 2 * _BLOCK_COLUMNS // width))
    return min(range(1, most + 1), key=cost), width


def _column_blocks(contraction: Contraction, lines: int, width: int) -> int:
    sizes = [contraction.nest.sizes[loop] for loop in contraction.columns]
    along = -(-sizes[-1] // width)
    return along * (-(-sizes[0] // lines) if len(sizes) == 2 else 1)


def emit_contraction(
    code: Code,
    contraction: Contraction,
    kernels: MicroKernels,
    *,
    vector_bits: int,
    threads: bool,
) -> None:
    """Writes the loops of a contraction and its epilogues."""
    work = contraction.nest.iterations // 8
    parallel = threads and work >= PARALLEL_WORK
    blocking = choose_blocking(contraction, vector_bits, threads=parallel)
    _Writer(code, contraction, kernels, blocking).write(parallel)


@dataclass(frozen=True)
class _Tiles:
    """What all tiles of a block share: the buffers, the number of steps, whether they are first."""

    fresh: SSAValue
    a: SSAValue
    packed: SSAValue
    c: SSAValue
    steps: Index


class _Writer:
    def __init__(
        self, code: Code, contraction: Contraction, kernels: MicroKernels, blocking: Blocking
    ):
        self._code = code
        self._it = contraction
        self._nest = contraction.nest
        self._kernels = kernels
        self._blocking = blocking

    def write(self, parallel: bool) -> None:
        """Loops over the outer loops, blocks of rows and blocks of columns."""
        sizes = [self._nest.sizes[loop] for loop in self._it.outer]
        panels = -(-self._it.rows // self._blocking.tile.rows)
        sizes.append(-(-panels // self._blocking.panels))
        steps = [1] * len(sizes)
        for loop, step in self._column_steps():
            sizes.append(self._nest.sizes[loop])
            steps.append(step)
        if parallel:
            cut = [
                n for n, (size, step) in enumerate(zip(sizes, steps, strict=True)) if size > step
            ]
            with self._code.parallel([sizes[n] for n in cut], [steps[n] for n in cut]) as counters:
                position = dict(zip(cut, counters, strict=True))
                self._block([position.get(n, 0) for n in range(len(sizes))])
        else:
            self._sequential(sizes, steps, ())

    def _sequential(
        self, sizes: Sequence[int], steps: Sequence[int], counters: tuple[Index, ...]
    ) -> None:
        done = len(counters)
        if done == len(sizes):
            self._block(counters)
        elif sizes[done] <= steps[done]:
            self._sequential(sizes, steps, (*counters, 0))
        else:
            with self._code.loop(sizes[done], step=steps[done]) as loop:
                self._sequential(sizes, steps, (*counters, loop.counter))

    def _column_steps(self) -> list[tuple[int, int]]:
        """The loops over columns and how far a block reaches in them."""
        blocking = self._blocking
        if len(self._it.columns) == 1:
            return [(self._it.columns[0], blocking.width)]
        outer, inner = self._it.columns
        return [(outer, blocking.lines), (inner, blocking.width)]

    def _block(self, counters: Sequence[Index]) -> None:
        """One block: some row panels times some columns."""
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
            self._apply(epilogue, at, panel, self._product(lines, extents[-1]))

    def _product(self, lhs: Index, rhs: Index) -> Index:
        if isinstance(rhs, int):
            return self._code.scale_index(lhs, rhs)
        if isinstance(lhs, int):
            return self._code.scale_index(rhs, lhs)
        return self._code.emit(arith.MuliOp(lhs, rhs))

    def _rows(self, panel: Index) -> tuple[Index, Index]:
        """The first row of the block and the row after its last."""
        code, rows = self._code, self._blocking.tile.rows
        first = code.scale_index(panel, rows)
        after = code.add_index(first, self._blocking.panels * rows)
        return first, code.minimum(after, self._it.rows)

    def _store(self, value: SSAValue, index: Index) -> None:
        self._code.store(value, self._nest.accesses[_C].buffer, index)

    def _entered_row(self, at: Position, counter: Index) -> Position:
        if self._it.row is None:
            return at
        return at.entered(self._code, self._nest, self._it.row, counter)

    def _accumulate(self, at: Position, panel: Index, lines: Index, width: Index) -> None:
        code, blocking, it, nest = self._code, self._blocking, self._it, self._nest
        outer, *inner = it.steps
        inner_steps = math.prod(nest.sizes[loop] for loop in inner)
        size = blocking.depth * inner_steps * blocking.stride
        packed = code.emit(memref.AllocaOp.get(blocking.tile.element, 64, [size]))
        with code.loop(nest.sizes[outer], step=blocking.depth) as loop:
            here = at.entered(code, nest, outer, loop.counter)
            depth: Index = blocking.depth
            if nest.sizes[outer] % blocking.depth:
                left = code.add_index(nest.sizes[outer], code.scale_index(loop.counter, -1))
                depth = code.minimum(left, blocking.depth)
            self._pack(packed, here.following([_B]), depth, lines, width)
            steps = code.scale_index(depth, inner_steps)
            fresh = code.is_zero(loop.counter) if it.fresh else code.false()
            a, c = (code.unknown_size(nest.accesses[n].buffer) for n in (_A, _C))
            tiles = _Tiles(fresh, a, code.unknown_size(packed), c, steps)
            self._multiply(tiles, here.following([_A, _C]), panel, self._product(lines, width))

    def _pack(
        self, packed: SSAValue, at: Position, depth: Index, lines: Index, width: Index
    ) -> None:
        """Copies the block of `b` to `packed`, `stride` elements for each step."""
        code, nest = self._code, self._nest
        outer, *inner = self._it.steps

        def copy_step(here: Position, step: Index) -> None:
            target = code.scale_index(step, self._blocking.stride)
            if len(self._it.columns) == 1:
                self._copy_line(packed, target, here, width)
                return
            above = self._it.columns[0]
            with code.loop(lines) as loop:
                shift = code.scale_index(loop.counter, self._blocking.width)
                line = here.entered(code, nest, above, loop.counter)
                self._copy_line(packed, code.add_index(target, shift), line, width)

        def walk(here: Position, rest: Sequence[int], step: Index) -> None:
            if not rest:
                copy_step(here, step)
                return
            with code.loop(nest.sizes[rest[0]]) as loop:
                base = code.scale_index(step, nest.sizes[rest[0]])
                walk(
                    here.entered(code, nest, rest[0], loop.counter),
                    rest[1:],
                    code.add_index(base, loop.counter),
                )

        with code.loop(depth) as loop:
            walk(at.entered(code, nest, outer, loop.counter), inner, loop.counter)

    def _copy_line(self, packed: SSAValue, target: Index, at: Position, width: Index) -> None:
        """Copies the elements of `b` along the last column loop; whole vectors when adjacent."""
        code, nest = self._code, self._nest
        access, lanes = nest.accesses[_B], self._blocking.tile.lanes
        loop_number = self._it.columns[-1]
        done: Index = 0
        if access.coefficients[loop_number] == 1:
            buffer, type_ = code.flat(access.buffer), self._blocking.tile.vector
            done = code.scale_index(code.quotient(width, lanes), lanes)
            with code.unrolled(done, step=lanes, most=_UNROLLED_VECTORS) as columns:
                for column in columns:
                    source = code.add_index(at.indices[_B], column)
                    value = code.emit(vector.LoadOp(buffer, [code.index(source)], type_))
                    place = code.index(code.add_index(target, column))
                    code.add(vector.StoreOp(value, packed, [place]))
        with code.unrolled(width, start=done, most=lanes) as columns:
            for column in columns:
                source = at.entered(code, nest, loop_number, column)
                value = code.load(access.buffer, source.indices[_B])
                code.store(value, packed, code.add_index(target, column))

    def _multiply(self, tiles: _Tiles, at: Position, panel: Index, columns: Index) -> None:
        """Runs the micro-kernels over the tiles of the block."""
        code, tile = self._code, self._blocking.tile
        first, after = self._rows(panel)
        rest = self._it.rows % tile.rows
        whole = code.minimum(after, self._it.rows - rest)
        with code.loop(whole, start=first, step=tile.rows) as loop:
            self._row_of_tiles(tiles, self._entered_row(at, loop.counter), tile.rows, columns)
        if not rest:
            return
        with code.if_positive(code.add_index(after, -(self._it.rows - rest))):
            last = self._entered_row(at, self._it.rows - rest)
            self._row_of_tiles(tiles, last, rest, columns)

    def _row_of_tiles(self, tiles: _Tiles, at: Position, rows: int, columns: Index) -> None:
        code, full = self._code, replace(self._blocking.tile, rows=rows)
        whole = code.scale_index(code.quotient(columns, full.columns), full.columns)
        with code.loop(whole, step=full.columns) as loop:
            self._call(full, tiles, at, loop.counter)
        rest = code.add_index(columns, code.scale_index(whole, -1))
        if rest == 0:
            return
        with code.if_positive(rest):
            self._call(replace(full, masked=True), tiles, at, whole, rest)

    def _call(
        self, tile: Tile, tiles: _Tiles, at: Position, column: Index, valid: Index | None = None
    ) -> None:
        code, accesses = self._code, self._nest.accesses
        row = self._it.row
        a_row = 0 if row is None else accesses[_A].coefficients[row]
        c_row = 0 if row is None else accesses[_C].coefficients[row]
        a_step = accesses[_A].coefficients[self._it.steps[-1]]
        c_start = code.add_index(at.indices[_C], column)
        arguments = [
            tiles.fresh,
            tiles.a,
            *(code.index(n) for n in (at.indices[_A], a_row, a_step)),
            tiles.packed,
            *(code.index(n) for n in (column, self._blocking.stride)),
            tiles.c,
            *(code.index(n) for n in (c_start, c_row, tiles.steps)),
        ]
        if valid is not None:
            arguments.append(code.index(valid))
        code.add(func.CallOp(self._kernels.symbol(tile), arguments, []))

    def _apply(self, epilogue: Epilogue, at: Position, panel: Index, columns: Index) -> None:
        """Runs an epilogue over the block, which is still in the cache."""
        code, nest = self._code, self._nest
        *inputs, output = epilogue.accesses
        first, after = self._rows(panel)
        at = at.following((*epilogue.accesses, _C))
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
                self._store(result, here.indices[_C])
