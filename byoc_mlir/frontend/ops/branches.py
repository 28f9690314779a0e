"""If: each branch becomes a function, and native code calls one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import onnx
from xdsl.dialects.builtin import SymbolRefAttr

from byoc_mlir.dialects.relay.control import IfOp
from byoc_mlir.dialects.relay.transform import ReshapeOp
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.bodies import Body
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.either_rank import differ_in_rank_alone, either_rank
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
        return list(_leaves(given[-1]))

    branches = [
        context.body("then_branch", (), partial(build, then_branch)),
        context.body("else_branch", (), partial(build, else_branch)),
    ]
    for one, other in zip(*given, strict=True):
        _check_alike(one, other, condition)
    either = _as_vectors(branches, [list(_leaves(values)) for values in given])
    chosen = _place_if(context, condition, branches)
    leaves = (either_rank(leaf) if n in either else leaf for n, leaf in enumerate(chosen))
    return [_like(value, leaves) for value in given[0]]


def either(
    context: NodeContext,
    condition: Value,
    then: Callable[[NodeContext], Value],
    otherwise: Callable[[NodeContext], Value],
) -> Value:
    """Builds two branches of one result type, and an op that calls one of them at run time.

    Args:
        condition: one `i1`, which is computed at run time.
        then: function that builds the first branch's value, given a context.
        otherwise: function that builds the second branch's value, given a context.
    """

    def build(make: Callable[[NodeContext], Value], inner: NodeContext, *_: object) -> list[Value]:
        return [make(inner)]

    branches = [
        context.body("then_branch", (), partial(build, then)),
        context.body("else_branch", (), partial(build, otherwise)),
    ]
    (chosen,) = _place_if(context, condition, branches)
    return chosen


def _place_if(context: NodeContext, condition: Value, branches: Sequence[Body]) -> Sequence[Value]:
    """Builds functions from two branches, and adds the op that calls one of them."""
    arguments, (then_function, else_function) = context.close_bodies(branches)
    return context.place(
        IfOp(
            context.builder.operand(arith.reshape(context, condition, ())),
            arguments,
            result_types=then_function.function_type.outputs.data,
            then_branch=SymbolRefAttr(then_function.sym_name),
            else_branch=SymbolRefAttr(else_function.sym_name),
        )
    )


def _as_vectors(branches: Sequence[Body], given: Sequence[Sequence[Value]]) -> set[int]:
    """Reshapes scalars to vectors of one element, if the other branch returns a vector.

    Returns the indices of the reshaped results.
    """
    found = {n for n, pair in enumerate(zip(*given, strict=True)) if differ_in_rank_alone(*pair)}
    for branch, values in zip(branches, given, strict=True):
        for number in found:
            if values[number].rank == 0:
                branch.change_result(number, lambda scalar: ReshapeOp(scalar, newshape=[1]))
    return found


def _leaves(values: Iterable[Value]) -> Iterator[Value]:
    """Yields the tensors that make up values."""
    for value in values:
        if isinstance(value, SequenceValue):
            yield from _leaves(value.items)
        else:
            yield value


def _like(value: Value, leaves: Iterator[Value]) -> Value:
    """Returns a value with the structure of `value` and tensors taken from `leaves`."""
    if isinstance(value, AbsentValue):
        return value
    if isinstance(value, SequenceValue):
        return SequenceValue(value.name, [_like(item, leaves) for item in value.items])
    return next(leaves)


def _check_alike(one: Value, other: Value, condition: Value) -> None:
    """Checks that both branches return values of one type.

    Raises:
        ValueNeeded: the types differ, so that the condition must be known.
    """
    if isinstance(one, SequenceValue) and isinstance(other, SequenceValue):
        if len(one.items) != len(other.items):
            raise ValueNeeded("the branches give sequences of different lengths", condition.inputs)
        for pair in zip(one.items, other.items, strict=True):
            _check_alike(*pair, condition)
    elif one.full_type != other.full_type and not differ_in_rank_alone(one, other):
        raise ValueNeeded(
            f"the branches give {one.full_type} and {other.full_type}, and which one is computed"
            " at run time",
            condition.inputs,
        )
