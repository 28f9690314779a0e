"""Loops for all ops except large contractions: element-wise ops and reductions."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from functools import partial

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.dynamic_buffers import buffer_sizes
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Dim
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.lowering.linalg_to_loops.blocked import Ordered, blocked
from byoc_mlir.lowering.linalg_to_loops.code import Emit, LoopWriter, Position
from byoc_mlir.lowering.linalg_to_loops.nest import Access, Nest, body_cost, split_loop
from byoc_mlir.lowering.threads import is_worth_threads
from byoc_mlir.lowering.to_llvm.types import byte_width

_UNROLLED = 64
"""Maximum number of reduction steps that are unrolled inside of a parallel loop."""

ENOUGH_PARALLEL = 16
"""Minimum number of iterations that threads can share evenly."""

_ROWS_AT_A_TIME = 4
_FEWEST_COMMON_STEPS = 32


def emit_nest(code: LoopWriter, nest: Nest, *, threads: bool, schedule: str = "") -> None:
    """Emits the loops of a nest.

    Args:
        schedule: one of the schedules that `schedules_for` returns.
    """
    if nest.iterations == 0:
        return
    if not nest.reductions:
        for part in blocked(nest, schedule) or (Ordered(nest, nest.parallel),):
            _elementwise(code, part.nest, part.loops, threads)
    elif is_window(nest):
        emit_window(code, nest, None, threads=threads)
    elif _vector_loop(nest) is None:
        _rows(code, nest, threads)
    else:
        _columns(code, nest, threads)


def _parallel_prefix(nest: Nest, loops: Sequence[int], threads: bool) -> int:
    """Returns the number of outermost loops to run on several threads."""
    if not threads:
        return 0
    count, iterations = 0, 1
    for loop in loops:
        if iterations >= ENOUGH_PARALLEL:
            break
        iterations *= hint(nest.sizes[loop])
        count += 1
    sizes = [nest.sizes[loop] for loop in loops[:count]]
    return count if is_worth_threads(sizes, cycles_of(nest)) else 0


def cycles_of(*nests: Nest) -> float:
    """Returns an estimate of the cycles of nests that run row by row, for the hints of sizes.

    It is the time of their arithmetic, or of the memory traffic of one nest: the next nest finds
    results in a cache.
    """
    iterations = sum(hint(nest.iterations) * body_cost(nest.body) for nest in nests)
    moved = max(_moved_bytes(nest) for nest in nests)
    return max(iterations / ASSUMED.loop_iterations, moved / ASSUMED.streamed_bytes)


def _moved_bytes(nest: Nest) -> int:
    """Returns the bytes that a nest reads and writes, with each element counted once."""
    return sum(
        _elements(nest, access) * byte_width(access.element_type) for access in nest.accesses
    )


def _elements(nest: Nest, access: Access) -> int:
    """Returns the maximum number of a buffer's elements that a nest visits."""
    steps = zip(nest.sizes, access.coefficients, strict=True)
    visits = hint(math.prod(size for size, step in steps if step != 0))
    assert isinstance(access.buffer.type, MemRefType)
    return min(visits, hint(math.prod(buffer_sizes(access.buffer.type))))


def enter(
    code: LoopWriter, nest: Nest, loops: Sequence[int], at: Position, body: Emit, parallel: int = 0
) -> None:
    """Emits the loops `loops` around `body`; the first `parallel` loops form one parallel nest."""
    if parallel:
        sizes = [nest.sizes[loop] for loop in loops[:parallel]]
        with code.parallel(sizes, cycles=cycles_of(nest)) as counters:
            for loop, counter in zip(loops, counters, strict=False):
                at = at.entered(code, nest, loop, counter)
            enter(code, nest, loops[parallel:], at, body)
        return
    if not loops:
        body(at)
        return
    with code.loop(nest.sizes[loops[0]]) as loop:
        enter(code, nest, loops[1:], at.entered(code, nest, loops[0], loop.counter), body)


def _load_inputs(code: LoopWriter, nest: Nest, at: Position) -> list[SSAValue]:
    """Emits the loads of the inputs that the body uses."""
    values: list[SSAValue] = []
    for access, index, arg in zip(nest.inputs, at.indices, nest.body.args, strict=False):
        values.append(code.load(access.buffer, index) if arg.first_use else arg)
    return values


def load_results(code: LoopWriter, nest: Nest, at: Position) -> list[SSAValue]:
    """Emits the loads of the results' current values."""
    places = zip(nest.results, at.indices[len(nest.inputs) :], strict=True)
    return [code.load(access.buffer, index) for access, index in places]


def store_results(code: LoopWriter, nest: Nest, at: Position, values: Sequence[SSAValue]) -> None:
    """Emits the stores of the results."""
    indices = at.indices[len(nest.inputs) :]
    for access, index, value in zip(nest.results, indices, values, strict=True):
        code.store(value, access.buffer, index)


def emit_step(
    code: LoopWriter, nest: Nest, at: Position, running: Sequence[SSAValue]
) -> list[SSAValue]:
    """Emits one iteration of the body on loaded inputs and the current accumulators."""
    inputs = _load_inputs(code, nest, at)
    return code.inline(nest.body, [*inputs, *running], at.counters)


def _elementwise(code: LoopWriter, nest: Nest, loops: Sequence[int], threads: bool) -> None:
    """Emits loops that compute each element once; the last of `loops` is innermost."""
    body = partial(emit_element, code, nest)
    enter(code, nest, loops, Position.start(nest), body, _parallel_prefix(nest, loops, threads))


def emit_element(code: LoopWriter, nest: Nest, at: Position) -> None:
    """Emits the computation of one element of a nest without reductions."""
    running = (
        load_results(code, nest, at) if nest.reads_results else nest.body.args[len(nest.inputs) :]
    )
    store_results(code, nest, at, emit_step(code, nest, at, running))


def is_window(nest: Nest) -> bool:
    """True if the reduction is short and the parallel loops are long, as in a pool."""
    steps = math.prod(nest.sizes[loop] for loop in nest.reductions)
    loops = nest.parallel
    if isinstance(steps, Dim) or steps > _UNROLLED or not loops or hint(nest.sizes[loops[-1]]) < 4:
        return False
    strides = [access.coefficients[loops[-1]] for access in nest.inputs]
    return any(isinstance(stride, int) and 0 < stride <= 4 for stride in strides)


def _vector_loop(nest: Nest) -> int | None:
    """Returns the parallel loop along which the results and a reduced input are contiguous."""
    reduced = [
        access
        for access in nest.inputs
        if any(access.coefficients[loop] != 0 for loop in nest.reductions)
    ]
    for loop in reversed(nest.parallel):
        adjacent = all(access.coefficients[loop] == 1 for access in nest.results)
        if adjacent and any(access.coefficients[loop] == 1 for access in reduced or nest.inputs):
            return loop
    return None


def emit_window(code: LoopWriter, nest: Nest, start: Attribute | None, *, threads: bool) -> None:
    """Emits a nest for which `is_window` holds.

    The reduction is unrolled inside of the parallel loops. The results start at `start`, or at
    their current values.
    """
    loops = nest.parallel
    order = sorted(nest.reductions)
    sizes = [operator.index(nest.sizes[loop]) for loop in order]
    steps = list(itertools.product(*map(range, sizes)))

    def first(at: Position) -> list[SSAValue]:
        if start is None:
            return load_results(code, nest, at)
        constants = [
            arith.ConstantOp.create(result_types=[access.element_type], properties={"value": start})
            for access in nest.results
        ]
        return [code.emit(constant) for constant in constants]

    def body(at: Position) -> None:
        running = first(at)
        for step in steps:
            inner = at
            for loop, counter in zip(order, step, strict=True):
                inner = inner.entered(code, nest, loop, counter)
            running = emit_step(code, nest, inner, running)
        store_results(code, nest, at, running)

    enter(code, nest, loops, Position.start(nest), body, _parallel_prefix(nest, loops, threads))


def _rows(code: LoopWriter, nest: Nest, threads: bool) -> None:
    """Emits reductions in registers, with the reduction loops innermost.

    Several results are computed at a time if they read common elements.
    """
    unrolled: list[int] = []
    if _rows_have_much_in_common(nest):
        last = nest.parallel[-1]
        nest, unrolled = split_loop(nest, last, _ROWS_AT_A_TIME), [last + 1]
    loops = [loop for loop in nest.parallel if loop not in unrolled]

    def body(at: Position) -> None:
        rows = [at]
        for loop in unrolled:
            rows = [at.entered(code, nest, loop, number) for number in range(_ROWS_AT_A_TIME)]
        emit_folds(code, nest, rows)

    enter(code, nest, loops, Position.start(nest), body, _parallel_prefix(nest, loops, threads))


def emit_folds(code: LoopWriter, nest: Nest, rows: Sequence[Position]) -> None:
    """Emits the reductions of several results in registers at once."""
    width = len(nest.results)

    def fold(
        rows: Sequence[Position], rest: Sequence[int], running: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        if not rest:
            folds = zip(rows, _in_groups(running, width), strict=True)
            return [value for at, values in folds for value in emit_step(code, nest, at, values)]
        with code.loop(nest.sizes[rest[0]], running) as loop:
            inner = [at.entered(code, nest, rest[0], loop.counter) for at in rows]
            loop.carry(fold(inner, rest[1:], loop.carried))
        return loop.results

    start = [value for row in rows for value in load_results(code, nest, row)]
    folded = fold(rows, sorted(nest.reductions), start)
    for row, values in zip(rows, _in_groups(folded, width), strict=True):
        store_results(code, nest, row, values)


def is_row_fold(nest: Nest) -> bool:
    """True if the nest reduces each result separately, in registers."""
    if is_window(nest) or _vector_loop(nest) is not None:
        return False
    return not _rows_have_much_in_common(nest)


def _in_groups(values: Sequence[SSAValue], size: int) -> list[Sequence[SSAValue]]:
    return [values[first : first + size] for first in range(0, len(values), size)]


def _rows_have_much_in_common(nest: Nest) -> bool:
    """True if adjacent results read the same elements of an input, in enough steps."""
    if not nest.parallel or nest.uses_position:
        return False
    last = nest.parallel[-1]
    steps = math.prod(nest.sizes[loop] for loop in nest.reductions)
    if nest.sizes[last] % _ROWS_AT_A_TIME != 0 or hint(steps) < _FEWEST_COMMON_STEPS:
        return False
    return any(
        access.coefficients[last] == 0
        and any(access.coefficients[loop] != 0 for loop in nest.reductions)
        for access in nest.inputs
    )


def _columns(code: LoopWriter, nest: Nest, threads: bool) -> None:
    """Emits reductions of whole rows in memory, so that LLVM vectorises the innermost loop."""
    vector = _vector_loop(nest)
    assert vector is not None
    outer = [loop for loop in nest.parallel if loop != vector]
    order = sorted(nest.reductions)

    def update(at: Position) -> None:
        store_results(code, nest, at, emit_step(code, nest, at, load_results(code, nest, at)))

    def rows(at: Position) -> None:
        enter(code, nest, [*order, vector], at, update)

    enter(code, nest, outer, Position.start(nest), rows, _parallel_prefix(nest, outer, threads))
