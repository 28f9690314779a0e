"""Contractions as packed, cache-blocked and register-blocked loops.

A block of columns of `b` is packed into a buffer on the stack, row by row of its steps: for a
convolution that is where windows become a matrix. Micro-kernels then run over the tiles of the
block, and what follows the contraction is applied while the block is in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, func, memref
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


class _Writer:
    def __init__(
        self, code: Code, contraction: Contraction, kernels: MicroKernels, blocking: Blocking
    ):
        self._code = code
        self._it = contraction
        self._nest = contraction.nest
        self._kernels = kernels
        self._blocking = blocking
        accesses = self._nest.accesses
        self._a = code.unknown_size(accesses[_A].buffer)
        self._c = code.unknown_size(accesses[_C].buffer)

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
            with self._code.parallel(sizes, steps) as counters:
                self._block(counters)
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
        self._fill(at, panel, lines, extents[-1])
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

    def _fill(self, at: Position, panel: Index, lines: Index, width: Index) -> None:
        start = self._it.start
        if start is None:
            return
        code = self._code
        value = code.emit(
            arith.ConstantOp.create(
                properties={"value": start}, result_types=[self._nest.accesses[_C].element_type]
            )
        )
        first, after = self._rows(panel)
        with code.loop(after, start=first) as rows:
            base = self._entered_row(at, rows.counter).indices[_C]
            with code.loop(self._product(lines, width)) as columns:
                self._store(value, code.add_index(base, columns.counter))

    def _store(self, value: SSAValue, index: Index) -> None:
        self._code.store(value, self._nest.accesses[_C].buffer, index)

    def _entered_row(self, at: Position, counter: Index) -> Position:
        if self._it.row is None:
            return at
        return at.entered(self._code, self._nest, self._it.row, counter)

    def _accumulate(self, at: Position, panel: Index, lines: Index, width: Index) -> None:
        code, blocking, nest = self._code, self._blocking, self._nest
        outer, *inner = self._it.steps
        inner_steps = math.prod(nest.sizes[loop] for loop in inner)
        size = blocking.depth * inner_steps * blocking.stride
        packed = code.emit(memref.AllocaOp.get(nest.accesses[_C].element_type, 64, [size]))
        with code.loop(nest.sizes[outer], step=blocking.depth) as loop:
            here = at.entered(code, nest, outer, loop.counter)
            depth: Index = blocking.depth
            if nest.sizes[outer] % blocking.depth:
                left = code.add_index(nest.sizes[outer], code.scale_index(loop.counter, -1))
                depth = code.minimum(left, blocking.depth)
            self._pack(packed, here, depth, lines, width)
            steps = code.scale_index(depth, inner_steps)
            self._multiply(packed, here, panel, self._product(lines, width), steps)

    def _pack(
        self, packed: SSAValue, at: Position, depth: Index, lines: Index, width: Index
    ) -> None:
        """Copies the block of `b` to `packed`, `stride` elements for each step."""
        code, nest = self._code, self._nest
        outer, *inner = self._it.steps
        buffer = nest.accesses[_B].buffer

        def copy_step(here: Position, step: Index) -> None:
            target = code.scale_index(step, self._blocking.stride)
            if len(self._it.columns) == 1:
                copy_line(here, target)
                return
            above = self._it.columns[0]
            with code.loop(lines) as loop:
                shift = code.scale_index(loop.counter, self._blocking.width)
                copy_line(
                    here.entered(code, nest, above, loop.counter), code.add_index(target, shift)
                )

        def copy_line(here: Position, target: Index) -> None:
            with code.loop(width) as loop:
                source = here.entered(code, nest, self._it.columns[-1], loop.counter)
                value = code.load(buffer, source.indices[_B])
                code.store(value, packed, code.add_index(target, loop.counter))

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

    def _multiply(
        self, packed: SSAValue, at: Position, panel: Index, columns: Index, steps: Index
    ) -> None:
        """Runs the micro-kernels over the tiles of the block."""
        code, tile = self._code, self._blocking.tile
        first, after = self._rows(panel)
        rest = self._it.rows % tile.rows
        whole = code.minimum(after, self._it.rows - rest)
        source = code.unknown_size(packed)
        with code.loop(whole, start=first, step=tile.rows) as loop:
            self._row_of_tiles(
                source, self._entered_row(at, loop.counter), tile.rows, columns, steps
            )
        if not rest:
            return
        with code.if_positive(code.add_index(after, -(self._it.rows - rest))):
            last = self._entered_row(at, self._it.rows - rest)
            self._row_of_tiles(source, last, rest, columns, steps)

    def _row_of_tiles(
        self, packed: SSAValue, at: Position, rows: int, columns: Index, steps: Index
    ) -> None:
        code, tile = self._code, self._blocking.tile
        whole = code.scale_index(code.quotient(columns, tile.columns), tile.columns)
        full = Tile(rows, tile.vectors, tile.lanes, tile.element, masked=False)
        with code.loop(whole, step=tile.columns) as loop:
            self._call(full, packed, at, loop.counter, steps)
        rest = code.add_index(columns, code.scale_index(whole, -1))
        if rest == 0:
            return
        masked = Tile(rows, tile.vectors, tile.lanes, tile.element, masked=True)
        with code.if_positive(rest):
            self._call(masked, packed, at, whole, steps, rest)

    def _call(
        self,
        tile: Tile,
        packed: SSAValue,
        at: Position,
        column: Index,
        steps: Index,
        valid: Index | None = None,
    ) -> None:
        code, accesses = self._code, self._nest.accesses
        row = self._it.row
        a_row = 0 if row is None else accesses[_A].coefficients[row]
        c_row = 0 if row is None else accesses[_C].coefficients[row]
        a_step = accesses[_A].coefficients[self._it.steps[-1]]
        arguments = [
            self._a,
            *(code.index(n) for n in (at.indices[_A], a_row, a_step)),
            packed,
            *(code.index(n) for n in (column, self._blocking.stride)),
            self._c,
            *(code.index(n) for n in (code.add_index(at.indices[_C], column), c_row, steps)),
        ]
        if valid is not None:
            arguments.append(code.index(valid))
        code.add(func.CallOp(self._kernels.symbol(tile), arguments, []))

    def _apply(self, epilogue: Epilogue, at: Position, panel: Index, columns: Index) -> None:
        """Runs an epilogue over the block, which is still in the cache."""
        code, nest = self._code, self._nest
        *inputs, output = epilogue.accesses
        first, after = self._rows(panel)
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
