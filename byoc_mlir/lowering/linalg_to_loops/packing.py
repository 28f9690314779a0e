"""Contractions that pack `b` block by block at run time.

A block of columns of `b` is copied to a buffer on the stack, one row for each step. For a
convolution, the copy converts windows to a matrix (im2col).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

from xdsl.dialects import memref, vector
from xdsl.ir import SSAValue

from byoc_mlir.dims import largest
from byoc_mlir.lowering.linalg_to_loops.code import Index, Position
from byoc_mlir.lowering.linalg_to_loops.tiled import A, B, C, TiledWriter, TileRows, Tiles

_UNROLLED_VECTORS = 8


class PackingWriter(TiledWriter):
    """Strategy for contractions that pack blocks of `b`."""

    def _accumulate(self, at: Position, panel: Index, lines: Index, width: Index) -> None:
        code, blocking, it, nest = self._code, self._blocking, self._it, self._nest
        outer, *inner = it.steps
        each = math.prod(nest.sizes[loop] for loop in inner)
        size = operator.index(blocking.depth * each * blocking.stride)
        packed = code.emit(memref.AllocaOp.get(blocking.tile.element, 64, [size]))
        b_step = self._b_step()
        # without steps, tiles are still written: they are zero
        with code.loop(largest(nest.sizes[outer], 1), step=blocking.depth) as loop:
            here = at.entered(code, nest, outer, loop.counter)
            depth: Index = blocking.depth
            if nest.sizes[outer] % blocking.depth != 0:
                left = code.add_index(nest.sizes[outer], code.scale_index(loop.counter, -1))
                depth = code.minimum(left, blocking.depth)
            self._pack(packed, here.following([B]), depth, lines, width)
            steps = code.scale_index(depth, each)
            fresh = self._fresh(loop.counter, self._blocking.depth)
            a, c = (code.unknown_size(nest.accesses[n].buffer) for n in (A, C))
            tiles = Tiles(fresh, a, code.unknown_size(packed), b_step, c, steps)
            self._multiply(tiles, here.following([A, C]), panel, self._code.product(lines, width))

    def _b_step(self) -> Index:
        """Returns the distance between two steps in a packed block; see `Tiles`."""
        return self._blocking.stride

    def _b_start(self, column: Index) -> Index:
        """Returns the offset of a tile's first column in a packed block."""
        return column

    def _multiply(self, tiles: Tiles, at: Position, panel: Index, columns: Index) -> None:
        """Emits the micro-kernels' calls; the innermost loop is over the packed block, which is in
        L1.
        """

        def row_of_tiles(rows: TileRows) -> None:
            here = self._entered_row(at, rows.first)
            self._over_columns(
                columns, lambda c: self._call(tiles, here, rows, c, self._b_start(c.first))
            )

        self._over_rows(panel, row_of_tiles)

    def _pack(
        self, packed: SSAValue, at: Position, depth: Index, lines: Index, width: Index
    ) -> None:
        """Emits the copy of a block of `b` to `packed`, with a distance of `stride` elements
        between steps.
        """
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
        """Emits the copy of `b` along the last column loop, in vectors if it is contiguous."""
        code, nest = self._code, self._nest
        access, lanes = nest.accesses[B], self._blocking.tile.lanes
        loop_number = self._it.columns[-1]
        done: Index = 0
        if access.coefficients[loop_number] == 1:
            buffer, type_ = code.flat(access.buffer), self._blocking.tile.vector
            done = code.scale_index(code.quotient(width, lanes), lanes)
            with code.unrolled(done, step=lanes, most=_UNROLLED_VECTORS) as columns:
                for column in columns:
                    source = code.add_index(at.indices[B], column)
                    value = code.emit(vector.LoadOp(buffer, [code.index(source)], type_))
                    place = code.index(code.add_index(target, column))
                    code.add(vector.StoreOp(value, packed, [place]))
        with code.unrolled(width, start=done, most=lanes) as columns:
            for column in columns:
                source = at.entered(code, nest, loop_number, column)
                value = code.load(access.buffer, source.indices[B])
                code.store(value, packed, code.add_index(target, column))
