"""Unrolled loops, for bodies that cannot be functions of native code.

Such loops compute on known values, change the shapes of carried values between iterations, or carry
sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import onnx

from byoc_mlir.dialects.relay import logic
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.value import NodeRefused, SequenceValue, Value, ValueNeeded

MAX_GUARDED_ITERATIONS = 64
"""Maximum iterations of a loop with an early exit; results after its end are discarded."""


def unrolled_loop(
    context: NodeContext,
    trip_count: Value | None,
    active: Value,
    initial: Sequence[Value],
    body: onnx.GraphProto,
) -> Sequence[Value]:
    """Returns the carried values of a `Loop`, then the stacked rows.

    Raises:
        ValueNeeded: the trip count must be known.
    """
    count = _trip_count(context, trip_count)
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
    if iteration or not formals:
        return [*states, *(stacked(context, parts) for parts in collected)]
    arguments = [context.constant(np.int64(0)), context.constant(True), *initial]
    return [*states, *_no_rows(context, arguments, body, formals)]


def _trip_count(context: NodeContext, trip_count: Value | None) -> int:
    if trip_count is None:
        return np.iinfo(np.int64).max
    return int(context.number(trip_count, "the trip count"))


def _may_go_on(active: Value) -> bool:
    return active.constant is None or bool(active.constant.reshape(-1)[0])


def _refuse_unbounded(
    active: Value, collected: Sequence[list[Value]], count: int, iteration: int
) -> None:
    """Refuses a loop that ends at run time, if it is long or stacks rows."""
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


def stacked(context: NodeContext, parts: Sequence[Value]) -> Value:
    """Returns the parts, at least one, as rows of one tensor."""
    rows = [arith.reshape(context, part, (1, *part.shape)) for part in parts]
    return arith.concatenate(context, rows, 0)


def _no_rows(
    context: NodeContext,
    arguments: Sequence[Value],
    body: onnx.GraphProto,
    formals: Sequence[onnx.ValueInfoProto],
) -> list[Value]:
    """Returns the stacked results of a loop without iterations; they have no rows.

    The body is imported for the types of a row, unless they are declared, and then discarded.

    Args:
        arguments: arguments of the body; only their types matter.
        formals: the outputs of the body that are stacked.
    """
    tensors = [formal.type.tensor_type for formal in formals]
    if all(_is_static(tensor) for tensor in tensors):
        types = [onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type) for tensor in tensors]
        shapes = [[dim.dim_value for dim in tensor.shape.dim] for tensor in tensors]
        return [
            context.constant(np.zeros((0, *shape), dtype))
            for shape, dtype in zip(shapes, types, strict=True)
        ]
    found: list[Value] = []

    def build(inner: NodeContext, path: str, formals: Sequence[Value]) -> Sequence[Value]:
        found.extend(inner.run_graph(body, formals, path))
        return ()

    with suppress(_ForgottenError), context.bodies.attempt():
        context.body("body", arguments, build)
        raise _ForgottenError
    rows = found[len(found) - len(formals) :]
    return [
        arith.broadcast(context, context.constant(0, row.dtype), (0, *row.sizes)) for row in rows
    ]


class _ForgottenError(Exception):
    """Exception that ends an import whose results are discarded."""


def _is_static(tensor: onnx.TypeProto.Tensor) -> bool:
    return tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim)


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


@dataclass(frozen=True)
class Scanned:
    """Input that a `Scan` iterates over."""

    value: Value
    axis: int
    backward: bool

    @property
    def steps(self) -> Size:
        """Returns the number of iterations."""
        return self.value.sizes[self.axis]


def unrolled_scan(
    context: NodeContext,
    states: Sequence[Value],
    scanned: Sequence[Scanned],
    body: onnx.GraphProto,
) -> Sequence[Value]:
    """Returns the carried values of a `Scan`, then the stacked rows in the order of iterations."""
    formals = body.output[len(states) :]
    collected: list[list[Value]] = [[] for _ in formals]
    count = scanned[0].steps
    if not isinstance(count, int):
        raise NodeRefused(f"the number of steps is {count}, and its body is no function")
    for step in range(count):
        slices = [
            arith.at(context, one.value, one.axis, count - 1 - step if one.backward else step)
            for one in scanned
        ]
        results = context.run_graph(body, (*states, *slices), context.name)
        states = results[: len(states)]
        for parts, part in zip(collected, results[len(states) :], strict=True):
            parts.append(part)
    if count or not formals:
        return [*states, *(stacked(context, parts) for parts in collected)]
    return [*states, *_no_rows(context, [*states, *map(_slice_of, scanned)], body, formals)]


def _slice_of(scanned: Scanned) -> Value:
    """Returns a value with the type of a slice, for a scanned input that has no slices."""
    value = scanned.value
    shape = [size for axis, size in enumerate(value.shape) if axis != scanned.axis]
    return Value(value.name, np.broadcast_to(np.zeros((), value.dtype), shape))
