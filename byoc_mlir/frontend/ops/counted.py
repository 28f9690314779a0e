"""Native loops whose trip count is known, or follows from shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr, TensorType
from xdsl.ir import Attribute

from byoc_mlir.dialects.locations import node_location
from byoc_mlir.dialects.relay.base import Tensor, check_tensor_type, tensor_of, type_sizes
from byoc_mlir.dialects.relay.control import FEWEST_ITERATIONS, ForOp
from byoc_mlir.dialects.relay.elementwise import SubtractOp
from byoc_mlir.dialects.relay.index import TakeOp
from byoc_mlir.dims import Size, largest
from byoc_mlir.frontend.bodies import Body
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.value import NodeRefused, Value


class CarriedChanges(NodeRefused):
    """Refusal of a loop that changes the type of a carried value."""


def iteration_number(context: NodeContext) -> Value:
    """Returns a placeholder for the iteration number, to build a body with."""
    return Value("iteration", np.array(0, np.int64), node_location(context.name))


def numbered(context: NodeContext, number: Value, count: Size | None) -> Value:
    """Returns the iteration number in a body, with its formula.

    Args:
        count: the trip count; `None` if it is not known.
    """
    return Value(
        number.name,
        context.builder.operand(number),
        formula=context.bodies.iterations.number(count),
    )


def check_repeats(count: Size) -> None:
    """Refuses a trip count that is known and too small for a native loop.

    Raises:
        NodeRefused: the trip count is below `FEWEST_ITERATIONS`.
    """
    if isinstance(count, int) and count < FEWEST_ITERATIONS:
        raise NodeRefused(f"the trip count is {count}; a loop needs at least {FEWEST_ITERATIONS}")


def check_unknown(body: Body, values: Sequence[Value]) -> None:
    """Checks that a loop depends on run-time values; otherwise it should be computed at import."""
    if not body.captured and all(value.constant is not None for value in values):
        raise NodeRefused("it depends on nothing that is computed at run time")


def check_carried(types: Sequence[Attribute], initial: Sequence[Value]) -> None:
    """Checks that carried values keep their types."""
    for number, (type_, value) in enumerate(zip(types, initial, strict=True)):
        if type_ != value.full_type:
            given = value.full_type
            raise CarriedChanges(f"value {number} is carried in as {given} and out as {type_}")


def for_loop(
    context: NodeContext, body: Body, initial: Sequence[Value], count: Size
) -> Sequence[Value]:
    """Returns the results of a native loop with a known or symbolic trip count."""
    count = largest(0, count)
    carried, rows = body.results[: len(initial)], body.results[len(initial) :]
    check_carried(carried, initial)
    check_unknown(body, initial)
    rows_of_all = stacked_types(rows, count)
    outside, (function,) = context.close_bodies([body])
    return context.place(
        ForOp(
            [*map(context.builder.operand, initial), *outside],
            result_types=[*carried, *rows_of_all],
            body=SymbolRefAttr(function.sym_name),
            count=count,
            carried=len(initial),
        )
    )


def stacked_types(rows: Sequence[Attribute], count: Size) -> list[Tensor]:
    """Returns the types of the stacked rows of all iterations."""
    types = [
        tensor_of(row.get_element_type(), (count, *type_sizes(cast(Tensor, row))))
        for row in rows
        if isinstance(row, TensorType)
    ]
    for type_ in types:
        check_tensor_type(type_, "the rows that a loop collects")
    return types


def backwards(context: NodeContext, rows: Value, count: Size) -> Value:
    """Returns the rows in reverse order."""
    last = context.size_constant(count - 1)
    places = context.emit(SubtractOp, last, arith.positions(context, count, 0, 1))
    return context.emit(TakeOp, rows, places, axis=0)
