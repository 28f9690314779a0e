"""If, Loop and Scan: branches are chosen or both computed, loops are unrolled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import logic
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.size import ArangeOp
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, SequenceValue, Value, ValueNeeded
from byoc_mlir.limits import check_constant

MAX_GUARDED_ITERATIONS = 64
"""Iterations of a loop that may end early: all are computed, and dropped after its end."""


@onnx_op("If")
def if_(
    context: NodeContext,
    condition: Value,
    *,
    then_branch: onnx.GraphProto,
    else_branch: onnx.GraphProto,
) -> Sequence[Value]:
    if condition.constant is not None:
        chosen = then_branch if condition.constant.reshape(-1)[0] else else_branch
        return context.run_graph(chosen, (), context.name)
    try:
        ones = context.run_graph(then_branch, (), context.name)
        others = context.run_graph(else_branch, (), context.name)
    except (NodeRefused, InvalidModelError) as error:
        if not condition.inputs:
            raise
        message = f"a branch does not fit, and which one counts is computed at run time: {error}"
        raise ValueNeeded(message, condition.inputs) from error
    scalar = arith.reshape(context, condition, ())
    return [_either(context, scalar, one, other) for one, other in zip(ones, others, strict=True)]


def _either(context: NodeContext, condition: Value, one: Value, other: Value) -> Value:
    if isinstance(one, SequenceValue) and isinstance(other, SequenceValue):
        if len(one.items) != len(other.items):
            raise ValueNeeded("the branches give sequences of different lengths", condition.inputs)
        pairs = zip(one.items, other.items, strict=True)
        return SequenceValue(one.name, (_either(context, condition, *pair) for pair in pairs))
    if one.type != other.type:
        raise ValueNeeded(
            f"the branches give {one.type} and {other.type}, and which one is computed at run time",
            condition.inputs,
        )
    return arith.where(context, condition, one, other)


@onnx_op("Loop")
def loop(
    context: NodeContext,
    trip_count: Value | None,
    condition: Value | None,
    *initial: Value,
    body: onnx.GraphProto,
) -> Sequence[Value]:
    count = _trip_count(context, trip_count)
    active = context.constant(True) if condition is None else condition
    states, collected = list(initial), [[] for _ in body.output[1 + len(initial) :]]
    iteration = 0
    while iteration < count and _may_go_on(active):
        number = context.constant(np.int64(iteration))
        results = context.run_graph(body, (number, active, *states), context.name)
        _refuse_unbounded(active, collected, count, iteration)
        going_on, news, scans = results[0], results[1 : 1 + len(states)], results[1 + len(states) :]
        states = [_kept(context, active, new, old) for new, old in zip(news, states, strict=True)]
        for parts, part in zip(collected, scans, strict=True):
            parts.append(part)
        active = _both(context, active, going_on)
        iteration += 1
    formals = body.output[1 + len(initial) :]
    return [
        *states,
        *(_stacked(context, part, formal) for part, formal in zip(collected, formals, strict=True)),
    ]


def _trip_count(context: NodeContext, trip_count: Value | None) -> int:
    if trip_count is None:
        return np.iinfo(np.int64).max
    return context.ints(trip_count, "the trip count")[0]


def _may_go_on(active: Value) -> bool:
    return active.constant is None or bool(active.constant.reshape(-1)[0])


def _refuse_unbounded(
    active: Value, collected: Sequence[list[Value]], count: int, iteration: int
) -> None:
    """A loop whose end is computed at run time must be short, and collect nothing."""
    if active.constant is not None:
        return
    if collected or min(count, iteration) > MAX_GUARDED_ITERATIONS:
        raise ValueNeeded("the number of iterations is computed at run time", active.inputs)


def _kept(context: NodeContext, active: Value, new: Value, old: Value) -> Value:
    if active.constant is not None:
        return new
    return _either(context, arith.reshape(context, active, ()), new, old)


def _both(context: NodeContext, active: Value, going_on: Value) -> Value:
    if active.constant is not None:
        return going_on
    if going_on.constant is not None and going_on.constant.all():
        return active
    scalars = (arith.reshape(context, value, ()) for value in (active, going_on))
    return context.emit(logic.LogicalAndOp, *scalars)


def _stacked(context: NodeContext, parts: Sequence[Value], formal: onnx.ValueInfoProto) -> Value:
    if parts:
        rows = [arith.reshape(context, part, (1, *part.shape)) for part in parts]
        return arith.concatenate(context, rows, 0)
    tensor = formal.type.tensor_type
    if not tensor.HasField("shape") or any(dim.dim_param for dim in tensor.shape.dim):
        raise NodeRefused(f"no iteration runs, and the shape of '{formal.name}' is not given")
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    return context.constant(np.zeros((0, *(dim.dim_value for dim in tensor.shape.dim)), dtype))


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
    scanned = values[len(values) - num_scan_inputs :]
    input_axes = scan_input_axes or [0] * num_scan_inputs
    directions = scan_input_directions or [0] * num_scan_inputs
    collected: list[list[Value]] = [[] for _ in body.output[len(states) :]]
    count = scanned[0].shape[input_axes[0]]
    for step in range(count):
        slices = [
            arith.at(context, value, axis % value.rank, count - 1 - step if backward else step)
            for value, axis, backward in zip(scanned, input_axes, directions, strict=True)
        ]
        results = context.run_graph(body, (*states, *slices), context.name)
        states = results[: len(states)]
        for parts, part in zip(collected, results[len(states) :], strict=True):
            parts.append(part)
    output_axes = scan_output_axes or [0] * len(collected)
    output_directions = scan_output_directions or [0] * len(collected)
    outputs = [
        _moved(context, _stacked(context, parts[::-1] if backward else parts, formal), axis)
        for parts, formal, axis, backward in zip(
            collected, body.output[len(states) :], output_axes, output_directions, strict=True
        )
    ]
    return [*states, *outputs]


@onnx_op("Scan", since=8)
def batched_scan(
    context: NodeContext,
    lengths: Value | None,
    *values: Value,
    body: onnx.GraphProto,
    num_scan_inputs: int,
    directions: Sequence[int] | None = None,
) -> Sequence[Value]:
    """All inputs and outputs have a batch axis; each example is scanned by itself."""
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
    columns = zip(*examples, strict=True)
    return [
        _stacked(context, parts, formal) for parts, formal in zip(columns, body.output, strict=True)
    ]


def _moved(context: NodeContext, stacked: Value, axis: int) -> Value:
    """The stacked dimension moved from the front to `axis`."""
    order = list(range(1, stacked.rank))
    order.insert(axis % stacked.rank, 0)
    return arith.transpose(context, stacked, order)


@onnx_op("Range")
def range_(
    context: NodeContext, start: Value, limit: Value, delta: Value, *, stash_type: int = 1
) -> Value:
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
    check_constant([count], start.dtype.itemsize, "the numbers of a Range")
    is_half = start.dtype.itemsize <= 2 and start.dtype.kind not in "iu"
    steps = np.arange(count, dtype=np.float32 if is_half else start.dtype)
    return context.constant((steps * step + first).astype(start.dtype))


def _symbolic_range(context: NodeContext, start: Value, limit: Value, delta: Value) -> Value:
    """As `range_`, of integers that follow from the sizes of inputs."""
    span = [
        context.sizes(value, what)[0]
        for value, what in ((start, "start"), (limit, "limit"), (delta, "delta"))
    ]
    return context.emit(ArangeOp, span=span, dtype=relay_type(start.dtype))
