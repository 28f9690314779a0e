"""Fusion of ops over the same rows, as in a softmax: all ops on one row, then all ops on the
next.

Each op reads from L1 the row that the previous op wrote.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.linalg import ops as linalg

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.lowering.linalg_to_loops.blocked import block_schedules
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter, Position
from byoc_mlir.lowering.linalg_to_loops.contraction import is_product_sum
from byoc_mlir.lowering.linalg_to_loops.nest import Access, Nest, nest_of
from byoc_mlir.lowering.linalg_to_loops.simple import (
    ENOUGH_PARALLEL,
    cycles_of,
    emit_element,
    emit_folds,
    enter,
    is_row_fold,
)
from byoc_mlir.lowering.threads import is_worth_threads

_ROW = 0
"""Loop over rows: the outermost one."""


def nests_in_rows(ops: Sequence[linalg.GenericOp]) -> Sequence[Nest]:
    """Returns the nests of the first ops that can run row by row; empty if that is not faster."""
    nests: list[Nest] = []
    for op in ops:
        nest = None if is_product_sum(op) else nest_of(op)
        if nest is None or not _has_rows(nest) or not _share_rows([*nests, nest]):
            break
        nests.append(nest)
    return nests if len(nests) > 1 and any(nest.reductions for nest in nests) else ()


def emit_rows(code: LoopWriter, nests: Sequence[Nest], *, threads: bool) -> None:
    """Emits one loop over rows, in which each nest processes one row."""
    rows = nests[0].sizes[_ROW]
    cycles = cycles_of(*nests)
    if threads and is_worth_threads([rows], cycles):
        with code.parallel([rows], cycles=cycles) as (row,):
            _emit_row(code, nests, row)
        return
    with code.loop(rows) as loop:
        _emit_row(code, nests, loop.counter)


def _emit_row(code: LoopWriter, nests: Sequence[Nest], row: Index) -> None:
    for nest in nests:
        at = Position.start(nest).entered(code, nest, _ROW, row)

        def body(here: Position, nest: Nest = nest) -> None:
            if nest.reductions:
                emit_folds(code, nest, [here])
            else:
                emit_element(code, nest, here)

        enter(code, nest, nest.parallel[1:], at, body)


def _has_rows(nest: Nest) -> bool:
    """True if there are enough rows, and no other schedule of the nest is faster."""
    if nest.uses_position or nest.iterations == 0 or _ROW not in nest.parallel:
        return False
    if hint(nest.sizes[_ROW]) < ENOUGH_PARALLEL:
        return False
    return is_row_fold(nest) if nest.reductions else not block_schedules(nest)


def _share_rows(nests: Sequence[Nest]) -> bool:
    """True if a row of a nest depends only on the same row of other nests."""
    if any(nest.sizes[_ROW] != nests[0].sizes[_ROW] for nest in nests):
        return False
    accesses = [(access, nest) for nest in nests for access in nest.accesses]
    written = {access.buffer for nest in nests for access in nest.results}
    return all(
        access.offset == 0 and _is_dense_row(access, nest)
        for access, nest in accesses
        if access.buffer in written
    )


def _is_dense_row(access: Access, nest: Nest) -> bool:
    """True if the elements of a row are contiguous up to the next row."""
    size = 1
    for loop in reversed(range(_ROW + 1, len(nest.sizes))):
        if access.coefficients[loop] == 0:
            continue
        if access.coefficients[loop] != size:
            return False
        size = size * nest.sizes[loop]
    return access.coefficients[_ROW] == size
