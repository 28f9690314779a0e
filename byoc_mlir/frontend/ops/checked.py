"""Checks of values at run time."""

from __future__ import annotations

import math

import numpy as np

from byoc_mlir.boundary import UNLIMITED
from byoc_mlir.dialects.relay import reduce
from byoc_mlir.dialects.relay.checked import CheckedOp
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.value import Value


def checked(
    context: NodeContext, data: Value, numbers: Value, what: str, least: Size, most: Size
) -> Value:
    """Returns `data`; a run raises `InvalidInputError` unless `least <= numbers <= most`."""
    if 0 in numbers.sizes:
        return data
    wide = cast(context, numbers, np.dtype(np.int64))
    if is_symbolic(numbers.sizes):  # it may be empty, and an accepted value changes nothing
        flat = arith.reshape(context, wide, [math.prod(numbers.sizes)])
        wide = arith.concatenate(context, [flat, context.size_constant([least])], 0)
    extremes = _extremes(context, wide)
    low = least if isinstance(least, int) else 0
    high = most if isinstance(most, int) else UNLIMITED
    for found in extremes:
        data = context.emit(CheckedOp, data, found, what=what, least=low, most=high)
    if not isinstance(least, int):
        behind = arith.subtract(context, extremes[0], context.size_constant(least))
        data = _not_negative(context, data, behind, f"{what} less {least}")
    if not isinstance(most, int):
        room = arith.subtract(context, context.size_constant(most), extremes[-1])
        data = _not_negative(context, data, room, f"the room behind {what}")
    return data


def _not_negative(context: NodeContext, data: Value, number: Value, what: str) -> Value:
    return context.emit(CheckedOp, data, number, what=what, least=0, most=UNLIMITED)


def _extremes(context: NodeContext, numbers: Value) -> list[Value]:
    """Returns the minimum and the maximum of a tensor; for a single number, only that number."""
    if all(size == 1 for size in numbers.sizes):
        return [arith.reshape(context, numbers, ())]
    axes = range(numbers.rank)
    return [
        arith.reduced(context, op, numbers, axes, keepdims=False)
        for op in (reduce.MinOp, reduce.MaxOp)
    ]
