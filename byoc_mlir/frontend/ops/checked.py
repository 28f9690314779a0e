"""Checks of numbers that are known when the model runs."""

from __future__ import annotations

import math

import numpy as np

from byoc_mlir.dialects.relay import reduce
from byoc_mlir.dialects.relay.checked import CheckedOp
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.value import Value

_GREATEST = int(np.iinfo(np.int64).max)


def checked(
    context: NodeContext, data: Value, numbers: Value, what: str, least: Size, most: Size
) -> Value:
    """`data`; the run is an `InvalidInputError` unless all of `numbers` are `least` to `most`."""
    if 0 in numbers.sizes:
        return data
    found = cast(context, numbers, np.dtype(np.int64))
    if is_symbolic(numbers.sizes):  # there may be none, and what is accepted changes nothing
        flat = arith.reshape(context, found, [math.prod(numbers.sizes)])
        found = arith.concatenate(context, [flat, context.size_constant([least])], 0)
    low, high = (size if isinstance(size, int) else None for size in (least, most))
    data = _within(context, data, found, what, low or 0, _GREATEST if high is None else high)
    if low is None:
        behind = arith.subtract(context, found, context.size_constant(least))
        data = _within(context, data, behind, f"{what} less {least}", 0, _GREATEST)
    if high is None:
        room = arith.subtract(context, context.size_constant(most), found)
        data = _within(context, data, room, f"the room behind {what}", 0, _GREATEST)
    return data


def _within(
    context: NodeContext, data: Value, numbers: Value, what: str, least: int, most: int
) -> Value:
    for found in _extremes(context, numbers):
        data = context.emit(CheckedOp, data, found, what=what, least=least, most=most)
    return data


def _extremes(context: NodeContext, numbers: Value) -> list[Value]:
    """The least and the greatest, which of one number are the same."""
    if all(size == 1 for size in numbers.sizes):
        return [arith.reshape(context, numbers, ())]
    axes = range(numbers.rank)
    return [
        arith.reduced(context, op, numbers, axes, keepdims=False)
        for op in (reduce.MinOp, reduce.MaxOp)
    ]
