"""Checks of numbers that are known when the model runs."""

from __future__ import annotations

import numpy as np

from byoc_mlir.dialects.relay import reduce
from byoc_mlir.dialects.relay.checked import CheckedOp
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.value import Value


def checked(
    context: NodeContext, data: Value, numbers: Value, what: str, least: int, most: int
) -> Value:
    """`data`; the run is an `InvalidInputError` unless all of `numbers` are `least` to `most`."""
    if 0 in numbers.sizes:
        return data
    wide = cast(context, numbers, np.dtype(np.int64))
    for found in _extremes(context, wide):
        data = context.emit(CheckedOp, data, found, what=what, least=least, most=most)
    return data


def checked_up_to(context: NodeContext, numbers: Value, what: str, most: Size) -> Value:
    """`numbers [N]`, of `i64`; the run is an `InvalidInputError` unless all are 0 to `most`."""
    found = numbers
    if not isinstance(numbers.sizes[0], int):  # there may be none, and 0 is always accepted
        none = context.constant(np.zeros(1, np.int64))
        found = arith.concatenate(context, [numbers, none], 0)
    if isinstance(most, int):
        return checked(context, numbers, found, what, 0, most)
    greatest = np.iinfo(np.int64).max
    numbers = checked(context, numbers, found, what, 0, greatest)
    room = arith.subtract(context, context.size_constant(most), found)
    return checked(context, numbers, room, f"the room behind {what}", 0, greatest)


def _extremes(context: NodeContext, numbers: Value) -> list[Value]:
    """The least and the greatest, which of one number are the same."""
    if all(size == 1 for size in numbers.sizes):
        return [arith.reshape(context, numbers, ())]
    axes = range(numbers.rank)
    return [
        arith.reduced(context, op, numbers, axes, keepdims=False)
        for op in (reduce.MinOp, reduce.MaxOp)
    ]
