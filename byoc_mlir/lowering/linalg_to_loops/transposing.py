"""Contractions whose `b` is stored transposed; blocks of it are transposed at run time.

A block is copied to panels of a tile's width, which tiles read row by row. Squares with as many
columns and steps as a vector has lanes are transposed in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, i64
from xdsl.ir import SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter, Position
from byoc_mlir.lowering.linalg_to_loops.contraction import Contraction
from byoc_mlir.lowering.linalg_to_loops.packing import PackingWriter
from byoc_mlir.lowering.linalg_to_loops.tiled import B


def is_transposed(contraction: Contraction) -> bool:
    """True if each column of `b` is contiguous along the steps."""
    b = contraction.nest.accesses[B].coefficients
    steps, columns = contraction.steps, contraction.columns
    return len(steps) == len(columns) == 1 and b[steps[0]] == 1 and b[columns[0]] != 1


class TransposingWriter(PackingWriter):
    """Strategy for contractions that transpose blocks of `b`."""

    def _b_step(self) -> Index:
        return self._blocking.tile.columns

    def _b_start(self, column: Index) -> Index:
        return self._code.scale_index(column, self._blocking.depth)

    def _pack(
        self, packed: SSAValue, at: Position, depth: Index, lines: Index, width: Index
    ) -> None:
        """Emits the copy of a block: squares of whole panels are transposed, the remainder is
        copied by element.
        """
        code, tile, (column,) = self._code, self._blocking.tile, self._it.columns
        whole = code.scale_index(code.quotient(width, tile.columns), tile.columns)
        with code.loop(whole, step=tile.columns) as panels:
            first = at.entered(code, self._nest, column, panels.counter)
            self._pack_panel(packed, self._b_start(panels.counter), first, depth)
        rest = code.add_index(width, code.scale_index(whole, -1))
        if rest != 0:
            last = at.entered(code, self._nest, column, whole)
            self._copy_steps(packed, self._b_start(whole), last, (0, depth), rest)

    def _pack_panel(self, packed: SSAValue, target: Index, at: Position, depth: Index) -> None:
        code, tile = self._code, self._blocking.tile
        (step,), (column,) = self._it.steps, self._it.columns
        squares = code.scale_index(code.quotient(depth, tile.lanes), tile.lanes)
        with code.loop(squares, step=tile.lanes) as loop:
            here = at.entered(code, self._nest, step, loop.counter)
            there = code.add_index(target, code.scale_index(loop.counter, tile.columns))
            for number in range(0, tile.columns, tile.lanes):
                source = here.entered(code, self._nest, column, number)
                self._turn_square(packed, code.add_index(there, number), source)
        if squares != depth:
            self._copy_steps(packed, target, at, (squares, depth), tile.columns)

    def _copy_steps(
        self,
        packed: SSAValue,
        target: Index,
        at: Position,
        steps: tuple[Index, Index],
        width: Index,
    ) -> None:
        """Emits the copy of the steps from `steps[0]` to `steps[1]` of a panel, element by
        element.
        """
        code, (step,) = self._code, self._it.steps
        with code.loop(steps[1], start=steps[0]) as loop:
            here = at.entered(code, self._nest, step, loop.counter)
            shift = code.scale_index(loop.counter, self._blocking.tile.columns)
            self._copy_line(packed, code.add_index(target, shift), here, width)

    def _turn_square(self, packed: SSAValue, target: Index, at: Position) -> None:
        code, access, tile = self._code, self._nest.accesses[B], self._blocking.tile
        buffer, column = code.flat(access.buffer), access.coefficients[self._it.columns[0]]
        lines: list[SSAValue] = []
        for number in range(tile.lanes):
            place = code.add_index(at.indices[B], column * number)
            lines.append(code.emit(vector.LoadOp(buffer, [code.index(place)], tile.vector)))
            following = code.index(code.add_index(place, column * tile.columns))  # next panel's
            code.add(host.PrefetchOp(buffer, following))
        for number, line in enumerate(_turned(code, lines, tile.vector)):
            place = code.index(code.add_index(target, number * tile.columns))
            code.add(vector.StoreOp(line, packed, [place]))


def _turned(code: LoopWriter, lines: Sequence[SSAValue], type_: VectorType) -> Sequence[SSAValue]:
    """Transposes a square of vectors in registers: lane `i` of vector `j` to lane `j` of `i`."""
    lanes, found = len(lines), list(lines)
    distance = lanes // 2
    while distance:
        # swaps the off-diagonal quarters of all squares of twice the distance
        upper = [n - distance + lanes if n & distance else n for n in range(lanes)]
        lower = [n + lanes if n & distance else n + distance for n in range(lanes)]
        for first in (n for n in range(lanes) if not n & distance):
            pair = found[first], found[first + distance]
            for number, mask in ((first, upper), (first + distance, lower)):
                order = DenseArrayBase.from_list(i64, mask)
                found[number] = code.emit(vector.ShuffleOp(*pair, order, result_type=type_))
        distance //= 2
    return found
