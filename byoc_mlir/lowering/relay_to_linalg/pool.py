"""Pools: reductions of an image's windows to one element each, and of whole images."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay import pool as relay
from byoc_mlir.dialects.relay.base import (
    ints,
    sizes_of,
    tensor_of,
    tensor_type,
)
from byoc_mlir.dialects.relay.element_types import HALVES, numpy_dtype
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.dims import Size, largest
from byoc_mlir.lowering.relay_to_linalg import reduce as reductions
from byoc_mlir.lowering.relay_to_linalg.builder import (
    Body,
    LinalgBuilder,
    Lowerings,
    Read,
    dim,
    dims,
)
from byoc_mlir.lowering.relay_to_linalg.computed_types import accumulator_type, bounds
from byoc_mlir.lowering.relay_to_linalg.kernel import Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.nn import window
from byoc_mlir.lowering.relay_to_linalg.ordered_bits import from_ordered, ordered_least, to_ordered
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars
from byoc_mlir.lowering.relay_to_linalg.window import padded, sliding

_MOST_ELEMENTS = 16
"""Maximum number of a window's elements that are unrolled."""

_MOST_CONVERSIONS = 8
"""Maximum number of windows along an axis that convert an element of 16 bits: more take longer than
writing converted elements and reading them."""


def _pool(b: LinalgBuilder, op: relay.PoolOp, data: SSAValue, fill: float, name: str) -> SSAValue:
    """Reduces each window of `data` by a binary op; elements outside count as `fill`.

    Sums of 16-bit floats are `f32`.

    Large windows are reduced along one dimension after the other: 3 + 3 ops instead of 3 * 3.
    """
    strides, padding, dilation = op.checked_window()
    counts, pool = sizes_of(op.output)[2:], ints(op.pool_size)
    windows = [_Windows(*sizes) for sizes in zip(counts, pool, strides, dilation, strict=True)]
    after = _behind(op, windows, sizes_of(data)[2:])
    data = padded(b, data, padding[: len(pool)], after, fill)
    if prod(pool) <= sum(pool):
        return _fold_windows(b, data, windows, fill, name)
    for axis in range(len(pool)):
        untouched = [_Windows(size, 1, 1, 1) for size in sizes_of(data)[2:]]
        only = [*untouched[:axis], windows[axis], *untouched[axis + 1 :]]
        data = _fold_windows(b, data, only, fill, name)
    return data


@dataclass(frozen=True)
class _Windows:
    """Windows along a dimension: `count` windows of `size` elements."""

    count: Size
    size: int
    stride: int
    dilation: int

    @property
    def reach(self) -> Size:
        """Returns the number of elements from the start of the first window to the end of the last
        one.
        """
        return (self.count - 1) * self.stride + (self.size - 1) * self.dilation + 1


def _behind(op: relay.PoolOp, windows: Sequence[_Windows], sizes: Sequence[Size]) -> list[Size]:
    """Returns the number of padding elements that windows read after the end of each dimension.

    For symbolic sizes, it is the whole padding, unless windows may reach beyond the padding.
    """
    _, padding, _ = op.checked_window()
    befores, afters = padding[: len(sizes)], padding[len(sizes) :]
    may_reach_beyond = bool(op.ceil_mode.value.data)
    behind: list[Size] = []
    for along, size, before, after in zip(windows, sizes, befores, afters, strict=True):
        read = along.reach - size - before
        is_known = isinstance(read, int) or may_reach_beyond
        behind.append(largest(0, read) if is_known else after)
    return behind


def _fold_windows(
    b: LinalgBuilder, data: SSAValue, windows: Sequence[_Windows], fill: float, name: str
) -> SSAValue:
    """Reduces the windows of `data [N, C, spatial...]`; small ones are unrolled."""
    n, pool = len(windows), [along.size for along in windows]
    shape = [*sizes_of(data)[:2], *(along.count for along in windows)]
    strides, dilation = [along.stride for along in windows], [along.dilation for along in windows]
    source = tensor_type(data).element_type
    element = accumulator_type(source) if name == "add" else source
    type_ = tensor_of(element, shape)
    if prod(pool) > _MOST_ELEMENTS:
        spatial, kernel = range(2, 2 + n), range(2 + n, 2 + 2 * n)
        exprs = [dim(0), dim(1), *sliding(spatial, kernel, strides, dilation)]
        return b.reduce(
            [Read(data, exprs), window(b, pool, first=2 + n)],
            b.filled(fill, type_),
            dims(range(2 + n)),
            list(kernel),
            2 + 2 * n,
            lambda s, x, _, result: s.binary(name, result, s.cast(x, source, element)),
        )
    elements = [
        b.extract(
            data,
            [0, 0, *(k * d for k, d in zip(place, dilation, strict=True))],
            shape,
            [1, 1, *strides],
        )
        for place in itertools.product(*map(range, pool))
    ]
    return b.elementwise(elements, type_, _folded(name, source, element))


def _folded(name: str, source: Attribute, element: Attribute) -> Body:
    def body(s: Scalars, *values: SSAValue) -> SSAValue:
        return reduce(
            lambda x, y: s.binary(name, x, y),
            (s.cast(value, source, element) for value in values),
        )

    return body


def _lower_max_pool(op: relay.MaxPoolOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    element = tensor_type(op.data).element_type
    if element in HALVES:
        peak = _pool(b, op, to_ordered(b, op.data), ordered_least(element), "max")
        return [from_ordered(b, peak, element)]
    return [_pool(b, op, op.data, bounds(element)[0], "max")]


def _lower_avg_pool(op: relay.AvgPoolOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    output = tensor_type(op.output)
    element = accumulator_type(output.element_type)
    steps = zip(ints(op.pool_size), op.checked_window()[0], strict=True)
    is_often_read = any(size > _MOST_CONVERSIONS * stride for size, stride in steps)
    data = b.cast(op.data, element) if is_often_read else op.data
    summed = _pool(b, op, data, 0, "add")
    result = b.elementwise(
        [summed, _window_counts(b, op, element)],
        tensor_type(summed),
        lambda s, x, count: s.div(x, count),
    )
    return [b.cast(result, output.element_type)]


def _window_counts(b: LinalgBuilder, op: relay.AvgPoolOp, element: Attribute) -> SSAValue:
    """Returns the divisor of each window: `[spatial...]`, or one value for all."""
    sizes, counts = sizes_of(op.data)[2:], sizes_of(op.output)[2:]
    _, padding, _ = op.checked_window()
    counts_all = bool(op.count_include_pad.value.data) or not any(padding)
    if not is_symbolic((*sizes, *counts)):
        known = _known_counts(op).astype(numpy_dtype(element))
        divisor = known.reshape(-1)[0] if len(np.unique(known)) == 1 else known
        return b.constant(np.array(divisor), "window_counts")
    if counts_all and not op.ceil_mode.value.data:
        return b.constant(np.array(prod(ints(op.pool_size)), numpy_dtype(element)), "window_counts")
    k = Kernel(op, [], [tensor_of(element, counts)])
    with k.loops(counts, cost=16) as place:
        count = k.index(1)
        for axis, at in enumerate(place):
            count = count * _counted(k, op, axis, at)
        k.outputs[0][place] = count.to(element)
    return k.finish(b)[0]


def _counted(k: Kernel, op: relay.AvgPoolOp, axis: int, place: Index) -> Num:
    """Emits the number of elements along an axis that count for a window, at least 1."""
    strides, padding, dilation = op.checked_window()
    spread, pool = dilation[axis], ints(op.pool_size)[axis]
    first, last = _counted_range(op, axis)
    start = k.index(place) * strides[axis] - padding[axis]
    before = (first - start).max(0) + (spread - 1)
    until = k.index(last) - start + (spread - 1)
    return ((until / spread).min(pool) - before / spread).max(1)


def _counted_range(op: relay.AvgPoolOp, axis: int) -> tuple[int, Size]:
    """Returns the first element along an axis that counts, and the one after the last."""
    _, padding, _ = op.checked_window()
    size, low, high = sizes_of(op.data)[axis + 2], padding[axis], padding[axis + op.SPATIAL_RANK]
    return (-low, size + high) if op.count_include_pad.value.data else (0, size)


def _known_counts(op: relay.AvgPoolOp) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Returns the number of counted elements of all windows, for static spatial sizes."""
    strides, padding, dilation = op.checked_window()
    pool = ints(op.pool_size)
    counts = np.ones((), np.int64)
    for axis in range(op.SPATIAL_RANK):
        first, last = _counted_range(op, axis)
        windows = operator.index(sizes_of(op.output)[axis + 2])
        starts = np.arange(windows) * strides[axis] - padding[axis]
        positions = starts[:, None] + np.arange(pool[axis]) * dilation[axis]
        inside = ((positions >= first) & (positions < operator.index(last))).sum(axis=1)
        counts = counts[..., None] * np.maximum(inside, 1)
    return counts


def _lower_global_max_pool(op: relay.GlobalPoolOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    element = tensor_type(op.data).element_type
    peak = reductions.fold(b, op.data, _spatial(op), "max", bounds(element)[0])
    return [b.cast(peak, element)]


def _lower_global_avg_pool(op: relay.GlobalPoolOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    return [b.cast(reductions.mean(b, op.data, _spatial(op)), tensor_type(op.output).element_type)]


def _spatial(op: relay.GlobalPoolOp) -> range:
    return range(2, 2 + op.SPATIAL_RANK)


def _lower_max_pool_with_argmax(
    op: relay.MaxPoolWithArgmaxOp, b: LinalgBuilder
) -> Sequence[SSAValue]:
    k = Kernel(op)
    strides, padding, dilation = op.checked_window()
    pool, rank = ints(op.pool_size), op.SPATIAL_RANK
    batch, channels, *sizes = k.inputs[0].sizes
    planes = batch * channels
    data = k.inputs[0].reshaped(planes, *sizes)
    values, indices = (output.reshaped(planes, *output.sizes[2:]) for output in k.outputs)
    steps = [
        prod(sizes[:axis] if op.column_major.value.data else sizes[axis + 1 :])
        for axis in range(rank)
    ]
    with k.loops(values.sizes, cost=4 * prod(pool)) as (plane, *place):
        best = k.variable(k.constant(bounds(data.type)[0], data.type))
        where = k.variable(k.constant(-1, i64))
        with k.sequential(pool) as tap:
            at = [
                k.index(place[axis]) * strides[axis]
                + k.index(tap[axis]) * dilation[axis]
                - padding[axis]
                for axis in range(rank)
            ]
            inside: Num | None = None
            position = k.index(plane) * prod(sizes)
            for axis in range(rank):
                within = (at[axis] >= 0) & (at[axis] < sizes[axis])
                inside = within if inside is None else inside & within
                position = position + at[axis] * steps[axis]
            assert inside is not None
            with k.when(inside):
                value = data[(plane, *at)]
                first_nan = value.is_nan() & ~best.value.is_nan()
                with k.when((value > best.value) | first_nan | (where.value < 0)):
                    best.value = value
                    where.value = position.to(i64)
        values[(plane, *place)] = best.value
        indices[(plane, *place)] = where.value
    return k.finish(b)


FUNCTIONS: Lowerings = {
    **dict.fromkeys(relay.MAX_POOL.values(), _lower_max_pool),
    **dict.fromkeys(relay.MAX_POOL_WITH_ARGMAX.values(), _lower_max_pool_with_argmax),
    **dict.fromkeys(relay.AVG_POOL.values(), _lower_avg_pool),
    **dict.fromkeys(relay.GLOBAL_MAX_POOL.values(), _lower_global_max_pool),
    **dict.fromkeys(relay.GLOBAL_AVG_POOL.values(), _lower_global_avg_pool),
}
