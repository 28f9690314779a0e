"""Slices and ranges in loop bodies whose bounds depend on the iteration number, but whose size is
constant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dialects.relay.index import TakeOp
from byoc_mlir.dialects.relay.shape import asking, at_most
from byoc_mlir.dims import Size, ceildiv, largest
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.frontend.builder import NodeContext, only
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.sizes import SizeTensor
from byoc_mlir.frontend.value import Value, ValueNeeded


def slice_of_iteration(
    context: NodeContext,
    data: Value,
    starts: Value,
    ends: Value,
    axes: Value | None,
    steps: Value | None,
) -> Value:
    """Returns a slice whose bounds are formulas of the iteration number.

    Raises:
        ValueNeeded: the slice's size is not provably the same in all iterations.
        VerifyException: the operands have different numbers of elements.
    """
    begins, stops = _items(starts, "starts"), _items(ends, "ends")
    along = range(len(begins)) if axes is None else context.ints(axes, "axes")
    strides = [1] * len(begins) if steps is None else context.ints(steps, "steps")
    counts = [len(begins), len(stops), len(along), len(strides)]
    if len(set(counts)) > 1:
        raise VerifyException(
            f"starts, ends, axes and steps have {counts} elements, accepted are as many of each"
        )
    starts = arith.reshape(context, starts, [len(begins)])
    bounds = zip(begins, stops, along, strides, strict=True)
    for place, (start, stop, axis, step) in enumerate(bounds):
        axis = normalize_axis(axis, data.rank)
        begin, count = _span(context, data.sizes[axis], start, stop, step)
        if isinstance(begin, int):
            data = arith.section(context, data, axis, begin, begin + count)
        else:
            first = arith.section(context, starts, 0, place, place + 1)
            places = arith.add(context, first, _numbers(context, count, 1, first))
            data = context.emit(TakeOp, data, places, axis=axis)
    return data


def _span(
    context: NodeContext, size: Size, start: Size, stop: Size, step: int
) -> tuple[Size, Size]:
    """Returns the begin and the element count of a slice along an axis of `size`."""
    iterations = context.bodies.iterations
    try:
        with asking(iterations.facts()):
            begin, end = (_place(bound, size) for bound in (start, stop))
            count = end - begin if at_most(begin, end) else 0
    except UndecidedSizeError as error:
        raise _not_fixed(f"the bounds {start} and {stop} of an axis of {size}: {error}") from error
    if step != 1 or not iterations.is_fixed(count):
        raise _not_fixed(f"the slice from {start} to {stop} by {step}")
    return begin, count


def _place(bound: Size, size: Size) -> Size:
    """Returns a slice's bound, counted from the front and clamped to the axis."""
    if not at_most(0, bound):
        bound = largest(bound + size, 0)
    return bound if at_most(bound, size) else size


def range_of_iteration(context: NodeContext, start: Value, limit: Value, delta: Value) -> Value:
    """Returns a range whose operands are formulas of the iteration number.

    Raises:
        ValueNeeded: the range's size is not provably the same in all iterations.
    """
    operands = ((start, "start"), (limit, "limit"), (delta, "delta"))
    first, last, step = (only(_items(value, what), what) for value, what in operands)
    if start.dtype.kind != "i" or not isinstance(step, int) or step == 0:
        raise _not_fixed(f"the range of {start.dtype} by {step}")
    count = ceildiv(last - first, step) if step > 0 else ceildiv(first - last, -step)
    iterations = context.bodies.iterations
    if not iterations.is_fixed(count):
        raise _not_fixed(f"the range from {first} to {last} by {step}")
    numbers = _numbers(context, largest(0, count), step, start)
    return arith.add(context, arith.reshape(context, start, ()), numbers)


def _numbers(context: NodeContext, count: Size, step: int, like: Value) -> Value:
    """Returns the `count` numbers `0, step, 2 step, …`, in the type of `like`."""
    if isinstance(count, int):
        return context.constant(np.arange(count) * step, like.dtype)
    numbers = cast(context, arith.positions(context, count, 0, 1), like.dtype)
    return arith.multiply(context, numbers, step)


def _items(value: Value, what: str) -> Sequence[Size]:
    """Returns the elements of a value that is constant or has a formula."""
    content = value.expressed
    if content is None:
        raise ValueNeeded(f"{what} must be a constant, but is computed at run time", value.inputs)
    return content.flat if isinstance(content, SizeTensor) else content.reshape(-1).tolist()


def _not_fixed(what: str) -> ValueNeeded:
    return ValueNeeded(f"{what} may differ in size from one iteration to the next", frozenset())
