"""If: branches are functions, of which native code calls one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import onnx
from xdsl.dialects.builtin import SymbolRefAttr

from byoc_mlir.dialects.relay.control import IfOp
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import (
    AbsentValue,
    NodeRefused,
    SequenceValue,
    Value,
    ValueNeeded,
)


@onnx_op("If")
def if_(
    context: NodeContext,
    condition: Value,
    *,
    then_branch: onnx.GraphProto,
    else_branch: onnx.GraphProto,
) -> Sequence[Value]:
    if condition.constant is not None:
        chosen = then_branch if context.number(condition, "the condition") else else_branch
        return context.run_graph(chosen, (), context.name)
    try:
        with context.bodies.attempt():
            return _run_time_if(context, condition, then_branch, else_branch)
    except (NodeRefused, InvalidModelError) as error:
        if not condition.inputs:
            raise
        message = f"a branch does not fit, and which one counts is computed at run time: {error}"
        raise ValueNeeded(message, condition.inputs) from error


def _run_time_if(
    context: NodeContext,
    condition: Value,
    then_branch: onnx.GraphProto,
    else_branch: onnx.GraphProto,
) -> Sequence[Value]:
    given: list[Sequence[Value]] = []

    def build(
        graph: onnx.GraphProto, inner: NodeContext, path: str, _: Sequence[Value]
    ) -> Sequence[Value]:
        given.append(inner.run_graph(graph, (), path))
        return [leaf for value in given[-1] for leaf in _leaves(value)]

    branches = [
        context.body("then_branch", (), partial(build, then_branch)),
        context.body("else_branch", (), partial(build, else_branch)),
    ]
    for one, other in zip(*given, strict=True):
        _check_alike(one, other, condition)
    arguments, (then_function, else_function) = context.close_bodies(branches)
    chosen = context.place(
        IfOp(
            context.builder.operand(arith.reshape(context, condition, ())),
            arguments,
            result_types=then_function.function_type.outputs.data,
            then_branch=SymbolRefAttr(then_function.sym_name),
            else_branch=SymbolRefAttr(else_function.sym_name),
        )
    )
    leaves = iter(chosen)
    return [_like(value, leaves) for value in given[0]]


def _leaves(value: Value) -> Iterator[Value]:
    """The tensors of a value."""
    if not isinstance(value, SequenceValue):
        yield value
        return
    for item in value.items:
        yield from _leaves(item)


def _like(value: Value, leaves: Iterator[Value]) -> Value:
    """A value with the structure of `value`, its tensors taken from `leaves`."""
    if isinstance(value, AbsentValue):
        return value
    if isinstance(value, SequenceValue):
        return SequenceValue(value.name, [_like(item, leaves) for item in value.items])
    return next(leaves)


def _check_alike(one: Value, other: Value, condition: Value) -> None:
    """Checks that the branches give values of one type.

    Raises:
        ValueNeeded: they do not, so which branch it is has to be known.
    """
    if isinstance(one, SequenceValue) and isinstance(other, SequenceValue):
        if len(one.items) != len(other.items):
            raise ValueNeeded("the branches give sequences of different lengths", condition.inputs)
        for pair in zip(one.items, other.items, strict=True):
            _check_alike(*pair, condition)
    elif one.full_type != other.full_type:
        raise ValueNeeded(
            f"the branches give {one.full_type} and {other.full_type}, and which one is computed"
            " at run time",
            condition.inputs,
        )
