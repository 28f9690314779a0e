"""Contractions that pack `b` block by block; rows of pixels that several windows share are packed
once.

The windows of a convolution of stride 1 overlap: row 1 of a window is row 0 of the window below it.
For each channel and window column, a packed block holds every row of pixels once. A step begins at
the first row of pixels that its window row reads; the block's columns follow without gaps.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import arith, memref
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.lowering.linalg_to_loops.blocking import Blocking
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter, Position
from byoc_mlir.lowering.linalg_to_loops.contraction import Contraction
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import TABLE_ENTRY, MicroKernels, buffer_type
from byoc_mlir.lowering.linalg_to_loops.packing import PackingWriter
from byoc_mlir.lowering.linalg_to_loops.tiled import B

_PACKED_BYTES = 24 << 10
"""Bytes of a packed block: a part of L1. Its steps are at uneven distances, which no hardware
prefetcher predicts."""
_MOST_ROWS = 48
"""Maximum number of rows: with more rows, packing takes little time in proportion, and tiles that
read aligned vectors are faster."""


@dataclass(frozen=True)
class Overlap:
    """Layout of a packed block with overlapping windows."""

    row: int
    """Loop over the rows of the window."""
    lines: int
    """Rows of pixels in a block, packed for each step along the other loops."""
    depth: int
    """Outer steps of a block."""


def overlap_of(contraction: Contraction, blocking: Blocking) -> Overlap | None:
    """Returns the layout of a block with overlapping windows; None if they do not overlap, or it
    does not pay.
    """
    if is_symbolic(contraction.nest.sizes):
        return None
    sizes, rows = [operator.index(size) for size in contraction.nest.sizes], contraction.rows
    nest = contraction.nest
    if operator.index(rows) > _MOST_ROWS or len(contraction.columns) == 1 or blocking.lines == 1:
        return None
    outer, *inner = contraction.steps
    coefficients = nest.accesses[B].coefficients
    line = coefficients[contraction.columns[0]]
    row = next((loop for loop in contraction.steps if coefficients[loop] == line), None)
    if row is None or (row == outer and blocking.depth < sizes[outer]):
        return None
    lines = blocking.lines + sizes[row] - 1
    if row == outer:
        return Overlap(row, lines, blocking.depth)
    step = prod(sizes[loop] for loop in inner if loop != row) * lines * blocking.width
    fitting = max(1, _PACKED_BYTES // (step * blocking.tile.element.size))
    blocks = -(-sizes[outer] // min(blocking.depth, fitting))
    return Overlap(row, lines, -(-sizes[outer] // blocks))


class OverlapWriter(PackingWriter):
    """Strategy for contractions that pack shared rows once; a table holds the offsets of the
    steps.
    """

    def __init__(
        self,
        code: LoopWriter,
        contraction: Contraction,
        kernels: MicroKernels,
        blocking: Blocking,
        overlap: Overlap,
    ):
        tile = replace(blocking.tile, gathered=True)
        blocking = replace(blocking, tile=tile, depth=overlap.depth)
        super().__init__(code, contraction, kernels, blocking)
        self._overlap = overlap
        self._line = contraction.columns[0]
        self._sizes = {loop: operator.index(self._nest.sizes[loop]) for loop in contraction.steps}
        self._sizes[contraction.steps[0]] = blocking.depth
        self._others = tuple(loop for loop in contraction.steps if loop != overlap.row)
        self._pitches: dict[int, int] = {}  # of the other steps, in the packed block
        pitch = overlap.lines * blocking.width
        for loop in reversed(self._others):
            self._pitches[loop] = pitch
            pitch *= self._sizes[loop]
        self._size = pitch

    def _packed_size(self) -> int:
        return self._size

    def _b_step(self) -> Index:
        """Emits the table of the steps' offsets."""
        code, row = self._code, self._overlap.row
        table = code.emit(memref.AllocaOp.get(TABLE_ENTRY, 64, [prod(self._sizes.values())]))

        def enter_rows(counters: Mapping[int, Index], start: Index) -> None:
            with code.loop(self._sizes[row]) as rows:
                step: Index = 0
                for loop, counter in {**counters, row: rows.counter}.items():
                    step = code.add_index(step, code.scale_index(counter, self._steps_of(loop)))
                shift = code.scale_index(rows.counter, self._blocking.width)
                first = code.index(code.add_index(start, shift))
                code.store(code.emit(arith.IndexCastOp(first, TABLE_ENTRY)), table, step)

        self._over_others(self._sizes, enter_rows)
        return code.emit(memref.CastOp.get(table, buffer_type(TABLE_ENTRY)))

    def _steps_of(self, loop: int) -> int:
        """Returns the number of steps in one iteration of a loop."""
        position = self._it.steps.index(loop)
        return prod(self._sizes[inner] for inner in self._it.steps[position + 1 :])

    def _pack(
        self, packed: SSAValue, at: Position, depth: Index, lines: Index, width: Index
    ) -> None:
        """Emits the copies of all rows of pixels that the block reads."""
        code, nest, overlap = self._code, self._nest, self._overlap

        def copy_lines(counters: Mapping[int, Index], start: Index) -> None:
            first = at
            for loop, counter in counters.items():
                first = first.entered(code, nest, loop, counter)
            with code.loop(code.add_index(lines, nest.sizes[overlap.row] - 1)) as loop:
                here = first.entered(code, nest, self._line, loop.counter)
                shift = code.scale_index(loop.counter, self._blocking.width)
                self._copy_line(packed, code.add_index(start, shift), here, width)

        self._over_others({**self._sizes, self._it.steps[0]: depth}, copy_lines)

    def _over_others(
        self,
        sizes: Mapping[int, Index],
        body: Callable[[Mapping[int, Index], Index], None],
    ) -> None:
        """Emits loops over all steps except the window's rows.

        Runs `body` on the loops' counters and their offset in the packed block.
        """

        def enter(position: int, counters: Mapping[int, Index], start: Index) -> None:
            if position == len(self._others):
                body(counters, start)
                return
            entered = self._others[position]
            with self._code.loop(sizes[entered]) as loop:
                shift = self._code.scale_index(loop.counter, self._pitches[entered])
                inner = {**counters, entered: loop.counter}
                enter(position + 1, inner, self._code.add_index(start, shift))

        enter(0, {}, 0)
