"""Groups of `linalg` ops that one kernel computes, row by row.

A thread, or the threads of a warp, compute one row of all ops of the group. So an op may read what
an earlier op of the group wrote in the same row, and nothing else that the group writes.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from byoc_mlir.dims import Size
from byoc_mlir.lowering.linalg_to_loops.nest import (
    Access,
    Nest,
    coalesced,
    permuted,
    plain_nest,
    without_unit_loops,
)

WARP = 32
"""Number of threads that run in step, and exchange values without memory."""

_FEWEST_ROWS = 64
"""Minimum number of rows for which one warp a row computes long element-wise ops fast enough."""

_LONGEST_ROW = 1024
"""Maximum number of elements of an element-wise op that one warp computes if there are few rows."""

_MOST_OPS = 16
"""Maximum number of ops of a kernel, which bounds the registers and LLVM's time."""

_NEUTRAL: dict[type[Operation], float] = {
    arith.AddfOp: 0.0,
    arith.MulfOp: 1.0,
    arith.MaximumfOp: -math.inf,
    arith.MinimumfOp: math.inf,
}
"""Ops whose partial results may be combined in any order, with their neutral elements."""


@dataclass(frozen=True)
class RowNest:
    """Loop nest with the loops that run over the rows."""

    nest: Nest
    over_rows: tuple[int, ...]
    """The first parallel loops."""

    @property
    def inner(self) -> tuple[int, ...]:
        """Returns the parallel loops within a row."""
        return self.nest.parallel[len(self.over_rows) :]

    def row_stride(self, access: Access) -> int | None:
        """Returns the distance between a buffer's rows; `None` if rows of the nest share
        elements.
        """
        loops = list(zip(_static(self.nest.sizes), _static(access.coefficients), strict=True))
        rows = [loops[loop] for loop in self.over_rows]
        within = [loop for number, loop in enumerate(loops) if number not in self.over_rows]
        if not rows:
            return 0
        stride = rows[-1][1]
        end = operator.index(access.offset) + sum((size - 1) * step for size, step in within)
        is_regular = all(
            outer == inner * size for (_, outer), (size, inner) in itertools.pairwise(rows)
        )
        is_apart = all(step >= 0 for _, step in within) and end < stride
        return stride if is_regular and is_apart else None


@dataclass(frozen=True)
class Group:
    """Ops of one kernel: `lanes` threads compute one of `rows` rows of each nest."""

    nests: tuple[RowNest, ...]
    rows: int
    lanes: int

    @property
    def threads(self) -> int:
        """Returns the number of threads of the kernel."""
        return self.rows * self.lanes


@dataclass(frozen=True)
class Fold:
    """Reduction of `f32` values by an op that may combine partial results in any order."""

    op: Operation
    neutral: float


def fold_of(body: Block) -> Fold | None:
    """Returns the reduction of a body with one result; `None` if it is no `Fold`."""
    end, total = body.last_op, body.args[-1]
    uses = tuple(total.uses)
    if end is None or len(end.operands) != 1 or len(uses) != 1 or total.type != f32:
        return None
    op = uses[0].operation
    if type(op) not in _NEUTRAL or end.operands[0].owner is not op:
        return None
    return Fold(op, _NEUTRAL[type(op)])


def group_of(ops: Sequence[linalg.GenericOp]) -> Group:
    """Returns the largest group at the beginning of `ops`, which is at least the first op."""
    first = next((n for n, op in enumerate(ops) if plain_nest(op).reductions), None)
    if first is not None:
        group = _grown(ops, ops[first])
        if len(group.nests) > first:
            return group
    return _grown(ops, ops[0])


def _grown(ops: Sequence[linalg.GenericOp], model: linalg.GenericOp) -> Group:
    """Returns the group of the first ops that may share the kernel of `model`; it may be empty."""
    rows = _result_count(model)
    lanes = _lanes_for(_in_rows(model, rows))
    nests: list[RowNest] = []
    for op in ops[:_MOST_OPS]:
        nest = _in_rows(op, rows)
        if nest is None or not (_fits(nest, rows, lanes) and _are_apart([*nests, nest])):
            break
        nests.append(nest)
    return Group(tuple(nests), rows, lanes)


def _result_count(op: linalg.GenericOp) -> int:
    nest = plain_nest(op)
    return math.prod(_static([nest.sizes[loop] for loop in nest.parallel]))


def _in_rows(op: linalg.GenericOp, rows: int) -> RowNest | None:
    """Returns the loop nest of an op with its leading loops over `rows` rows; `None` if it has
    other rows.

    Reductions are last, in the order of memory. A nest whose body uses its position keeps its
    loops.
    """
    nest = plain_nest(op)
    if nest.uses_position:
        return _split(nest, rows)
    nest = without_unit_loops(nest)
    outer_first = sorted(nest.reductions, key=lambda loop: -_longest_step(nest, loop))
    nest = permuted(nest, [*nest.parallel, *outer_first])
    split = _split(nest, rows)
    return None if split is None else _split(coalesced(nest, len(split.over_rows)), rows)


def _split(nest: Nest, rows: int) -> RowNest | None:
    """Chooses the first parallel loops as loops over rows, if they have as many iterations."""
    over_rows: list[int] = []
    count = 1
    for loop in nest.parallel:
        size = operator.index(nest.sizes[loop])
        if rows and count == rows and size != 1:
            break
        over_rows.append(loop)
        count *= size
    return RowNest(nest, tuple(over_rows)) if count == rows else None


def _longest_step(nest: Nest, loop: int) -> int:
    return max(_static([access.coefficients[loop] for access in nest.inputs]))


def _lanes_for(nest: RowNest | None) -> int:
    """Returns the number of threads that compute a row: a warp if it reduces contiguous rows."""
    if nest is None or not nest.nest.reductions or nest.nest.outputs != 1:
        return 1
    if fold_of(nest.nest.body) is None:
        return 1
    last = len(nest.nest.sizes) - 1
    steps = {access.coefficients[last] for access in nest.nest.inputs} - {0}
    return WARP if steps == {1} and operator.index(nest.nest.sizes[last]) >= WARP else 1


def _fits(nest: RowNest, rows: int, lanes: int) -> bool:
    """True if `lanes` threads compute a row of the nest fast enough."""
    if lanes == 1:
        return not nest.inner
    if nest.nest.reductions:
        return not nest.inner and _lanes_for(nest) == lanes
    elements = math.prod(_static([nest.nest.sizes[loop] for loop in nest.inner]))
    return rows >= _FEWEST_ROWS or elements <= _LONGEST_ROW


def _are_apart(nests: Sequence[RowNest]) -> bool:
    """True if each row depends only on the same row of buffers that the nests write."""
    if len(nests) == 1:
        return True
    written = {access.buffer for nest in nests for access in nest.nest.results}
    strides: dict[SSAValue, int | None] = {}
    for nest in nests:
        for access in nest.nest.accesses:
            if access.buffer not in written:
                continue
            stride = nest.row_stride(access)
            if stride is None or strides.setdefault(access.buffer, stride) != stride:
                return False
    return True


def _static(sizes: Sequence[Size]) -> list[int]:
    return [operator.index(size) for size in sizes]
