"""Loop and Scan: bodies become functions of native code; loops on known values are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dialects.relay.control import WhileOp
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.elementwise import SubtractOp
from byoc_mlir.dialects.relay.index import TakeOp
from byoc_mlir.dialects.relay.shape import same
from byoc_mlir.dialects.relay.size import ArangeOp
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.bodies import Body
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.graphs import STAGE_DOMAIN
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.counted import (
    CarriedChanges,
    backwards,
    check_carried,
    check_repeats,
    check_unknown,
    for_loop,
    iteration_number,
    numbered,
    stacked_types,
)
from byoc_mlir.frontend.ops.iterated import range_of_iteration
from byoc_mlir.frontend.ops.unrolled import Scanned, stacked, unrolled_loop, unrolled_scan
from byoc_mlir.frontend.registry import onnx_op, register_op
from byoc_mlir.frontend.value import (
    NodeRefused,
    Value,
)
from byoc_mlir.limits import check_constant

_NO_LIMIT = np.int64(np.iinfo(np.int64).max)


@onnx_op("Loop")
def loop(
    context: NodeContext,
    trip_count: Value | None,
    condition: Value | None,
    *initial: Value,
    body: onnx.GraphProto,
) -> Sequence[Value]:
    active = context.constant(True) if condition is None else condition

    def native() -> Sequence[Value]:
        try:
            return _native_loop(context, trip_count, active, initial, body)
        except CarriedChanges:
            if not _surely_begins(trip_count, active) or _collects(context, initial, body):
                raise
        return _peeled_loop(context, trip_count, active, initial, body)

    return _native_or_unrolled(
        context, native, lambda: unrolled_loop(context, trip_count, active, initial, body)
    )


def _surely_begins(trip_count: Value | None, active: Value) -> bool:
    """True if it is known that the first iteration runs."""
    if trip_count is not None and (trip_count.constant is None or trip_count.constant.max() < 1):
        return False
    return _is_true(active)


def _collects(context: NodeContext, initial: Sequence[Value], body: onnx.GraphProto) -> bool:
    return any(context.wants(output) for output in range(len(initial), len(body.output) - 1))


def _peeled_loop(
    context: NodeContext,
    trip_count: Value | None,
    active: Value,
    initial: Sequence[Value],
    body: onnx.GraphProto,
) -> Sequence[Value]:
    """Returns the results of a `Loop` that is imported as its first iteration and a loop of the
    remaining ones.
    """
    number = context.constant(np.int64(0))
    going_on, *results = context.run_graph(body, (number, active, *initial), context.name)
    states = results[: len(initial)]
    left = trip_count and arith.subtract(context, trip_count, 1)
    return _native_loop(context, left, going_on, states, body, first=1)


def _native_or_unrolled(
    context: NodeContext,
    native: Callable[[], Sequence[Value]],
    unrolled: Callable[[], Sequence[Value]],
) -> Sequence[Value]:
    """Returns the results of a native loop or, if it is refused, of an unrolled loop.

    Raises:
        InvalidModelError: the body is not valid; the error names the faulty node.
    """
    try:
        with context.bodies.attempt():
            return native()
    except (NodeRefused, InvalidModelError) as error:
        refusal = error
    try:
        return unrolled()
    except InvalidModelError as error:
        if isinstance(refusal, InvalidModelError):
            raise refusal from error
        raise


def _native_loop(
    context: NodeContext,
    trip_count: Value | None,
    active: Value,
    initial: Sequence[Value],
    body: onnx.GraphProto,
    first: int = 0,
) -> Sequence[Value]:
    """Returns the results of a `Loop` whose body is a function.

    Args:
        first: number of the loop's first iteration.

    Raises:
        NodeRefused: the body cannot be a function.
    """
    count = None
    if trip_count is not None and trip_count.known is not None:
        count = context.size(trip_count, "the trip count")
        check_repeats(count)
    is_for = count is not None and active.constant is not None and bool(active.constant.all())
    collects = _collects(context, initial, body)
    goes_on: list[Value] = []

    def build(inner: NodeContext, path: str, formals: Sequence[Value]) -> Sequence[Value]:
        number, *states = formals
        number = numbered(inner, number, count)
        if first:
            number = arith.add(inner, number, first)
        going_on, *results = inner.run_graph(body, (number, inner.constant(True), *states), path)
        if not collects:
            results = results[: len(states)]
        if is_for and _is_true(going_on):
            return results
        goes_on.append(going_on)
        return [arith.reshape(inner, going_on, ()), *results]

    made = context.body("body", [iteration_number(context), *initial], build)
    if not goes_on and count is not None:
        return for_loop(context, made, initial, count)
    check_unknown(made, [active, *initial, *([trip_count] if trip_count else [])])
    limit = context.constant(_NO_LIMIT) if trip_count is None else trip_count
    return _while(context, made, limit, active, initial, None)


@register_op(STAGE_DOMAIN, "Loop")
def bounded_loop(
    context: NodeContext,
    trip_count: Value,
    condition: Value | None,
    *initial: Value,
    body: onnx.GraphProto,
) -> Sequence[Value]:
    """Imports a `Loop` with stacked results of the maximum number of rows.

    The number of valid rows is returned last.
    """
    active = context.constant(True) if condition is None else condition

    def unrolled() -> Sequence[Value]:
        results = unrolled_loop(context, trip_count, active, initial, body)
        return [*results, context.constant(np.int64(results[-1].shape[0]))]

    return _native_or_unrolled(
        context, lambda: _counted_loop(context, trip_count, active, initial, body), unrolled
    )


def _counted_loop(
    context: NodeContext,
    trip_count: Value,
    active: Value,
    initial: Sequence[Value],
    body: onnx.GraphProto,
) -> Sequence[Value]:
    """Returns the results of a loop that also counts its iterations; the count is the last
    result.
    """
    most = int(context.number(trip_count, "the trip count"))
    carried = [*initial, context.constant(np.int64(0))]

    def build(inner: NodeContext, path: str, formals: Sequence[Value]) -> Sequence[Value]:
        number, *states, count = formals
        number = numbered(inner, number, most)
        going_on, *results = inner.run_graph(body, (number, inner.constant(True), *states), path)
        counted = [*results[: len(states)], arith.add(inner, count, 1), *results[len(states) :]]
        return [arith.reshape(inner, going_on, ()), *counted]

    made = context.body("body", [iteration_number(context), *carried], build)
    results = _while(context, made, trip_count, active, carried, max(most, 0))
    return [*results[: len(initial)], *results[len(carried) :], results[len(initial)]]


def _while(
    context: NodeContext,
    body: Body,
    limit: Value,
    active: Value,
    initial: Sequence[Value],
    most: int | None,
) -> Sequence[Value]:
    """Returns the results of a loop whose trip count is only known at run time.

    Args:
        most: upper bound of the number of rows; `None` if there is none.
    """
    carried, rows = body.results[1 : 1 + len(initial)], body.results[1 + len(initial) :]
    if rows and most is None:
        raise NodeRefused("how many rows it collects is computed at run time")
    check_carried(carried, initial)
    rows_of_all = stacked_types(rows, most or 0)
    outside, (function,) = context.close_bodies([body])
    operand = context.builder.operand
    return context.place(
        WhileOp(
            operand(arith.reshape(context, limit, ())),
            operand(arith.reshape(context, active, ())),
            [*map(operand, initial), *outside],
            result_types=[*carried, *rows_of_all],
            body=SymbolRefAttr(function.sym_name),
            carried=len(initial),
        )
    )


def _is_true(value: Value) -> bool:
    return value.constant is not None and bool(value.constant.all())


@onnx_op("Scan", since=9)
def scan(
    context: NodeContext,
    *values: Value,
    body: onnx.GraphProto,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> Sequence[Value]:
    if not 1 <= num_scan_inputs <= len(values):
        raise VerifyException(
            f"num_scan_inputs is {num_scan_inputs}, accepted are 1 to {len(values)}, the number of"
            " its inputs"
        )
    states = list(values[: len(values) - num_scan_inputs])
    inputs = values[len(values) - num_scan_inputs :]
    input_axes = scan_input_axes or [0] * num_scan_inputs
    directions = scan_input_directions or [0] * num_scan_inputs
    scanned = [
        Scanned(value, normalize_axis(axis, value.rank), bool(backward))
        for value, axis, backward in zip(inputs, input_axes, directions, strict=True)
    ]
    results = _scan_results(context, states, scanned, body)
    collected = results[len(states) :]
    output_axes = scan_output_axes or [0] * len(collected)
    output_directions = scan_output_directions or [0] * len(collected)
    outputs = [
        _moved(context, backwards(context, rows, scanned[0].steps) if backward else rows, axis)
        for rows, axis, backward in zip(collected, output_axes, output_directions, strict=True)
    ]
    return [*results[: len(states)], *outputs]


def _scan_results(
    context: NodeContext,
    states: Sequence[Value],
    scanned: Sequence[Scanned],
    body: onnx.GraphProto,
) -> Sequence[Value]:
    """Returns the carried values of a `Scan`, then the stacked rows in the order of iterations."""
    count = scanned[0].steps
    for other in scanned:
        if not same(other.steps, count):
            raise VerifyException(f"its inputs have {count} and {other.steps} steps")

    def build(inner: NodeContext, path: str, formals: Sequence[Value]) -> Sequence[Value]:
        number, *carried = formals
        slices = [_slice(inner, one, number) for one in scanned]
        return inner.run_graph(body, (*carried, *slices), path)

    def native() -> Sequence[Value]:
        check_repeats(count)
        made = context.body("body", [iteration_number(context), *states], build)
        return for_loop(context, made, states, count)

    return _native_or_unrolled(
        context, native, lambda: unrolled_scan(context, states, scanned, body)
    )


def _slice(context: NodeContext, scanned: Scanned, number: Value) -> Value:
    """Returns the slice of a scanned input that an iteration reads."""
    place = number
    if scanned.backward:
        last = context.size_constant(scanned.steps - 1)
        place = context.emit(SubtractOp, last, number)
    return context.emit(TakeOp, scanned.value, place, axis=scanned.axis)


@onnx_op("Scan", since=8)
def batched_scan(
    context: NodeContext,
    lengths: Value | None,
    *values: Value,
    body: onnx.GraphProto,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> Sequence[Value]:
    """Imports a `Scan` whose inputs and outputs have a batch axis, as one scan for each batch
    entry.
    """
    if lengths is not None:
        raise NodeRefused("sequence_lens are not supported")
    examples = [
        scan(
            context,
            *(arith.at(context, value, 0, number) for value in values),
            body=body,
            num_scan_inputs=num_scan_inputs,
            scan_input_directions=directions,
        )
        for number in range(values[0].shape[0])
    ]
    if not examples:
        raise NodeRefused("there is no example in the batch; accepted are 1 and more")
    return [stacked(context, parts) for parts in zip(*examples, strict=True)]


def _moved(context: NodeContext, stacked: Value, axis: int) -> Value:
    """Moves the dimension of stacked rows from the front to `axis`."""
    order = list(range(1, stacked.rank))
    order.insert(normalize_axis(axis, stacked.rank), 0)
    return arith.transpose(context, stacked, order)


@onnx_op("Range")
def range_(
    context: NodeContext, start: Value, limit: Value, delta: Value, *, stash_type: int = 1
) -> Value:
    if any(value.formula is not None for value in (start, limit, delta)):
        return range_of_iteration(context, start, limit, delta)
    if any(value.computed is not None for value in (start, limit, delta)):
        return _symbolic_range(context, start, limit, delta)
    first, last, step = (
        context.known(value, what).reshape(-1)[0]
        for value, what in ((start, "start"), (limit, "limit"), (delta, "delta"))
    )
    if step == 0 or not np.isfinite([first, last, step]).all():
        raise VerifyException(
            f"start, limit and delta are {first}, {last} and {step}; accepted are finite numbers,"
            " and no delta of 0"
        )
    count = max(0, int(np.ceil((np.float64(last) - np.float64(first)) / np.float64(step))))
    check_constant([count], start.dtype.itemsize, "the elements of a Range")
    is_half = start.dtype.itemsize <= 2 and start.dtype.kind not in "iu"
    steps = np.arange(count, dtype=np.float32 if is_half else start.dtype)
    return context.constant((steps * step + first).astype(start.dtype))


def _symbolic_range(context: NodeContext, start: Value, limit: Value, delta: Value) -> Value:
    """Returns a range whose bounds follow from the inputs' shapes."""
    span = [
        context.size(value, what)
        for value, what in ((start, "start"), (limit, "limit"), (delta, "delta"))
    ]
    return context.emit(ArangeOp, span=span, dtype=relay_type(start.dtype))
