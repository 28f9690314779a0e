"""Convolutions and pools: windows over explicitly padded data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay import window as relay
from byoc_mlir.dialects.relay.base import Tensor, ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.constant import Array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.lowering.relay_to_linalg import reduce as reductions
from byoc_mlir.lowering.relay_to_linalg.builder import (
    Body,
    LinalgBuilder,
    Lowerings,
    Read,
    dim,
    dims,
)
from byoc_mlir.lowering.relay_to_linalg.nn import contract, window
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars, accumulator_type, bounds

_MOST_ELEMENTS = 16
"""Windows of more elements are loops."""


def padded(
    b: LinalgBuilder,
    data: SSAValue,
    before: Sequence[int],
    after: Sequence[int],
    fill: float,
    dilation: Sequence[int] | None = None,
) -> SSAValue:
    """`data [N, C, spatial...]` with its spatial dimensions spread by `dilation` and extended.

    Negative amounts crop. The new elements are `fill`.
    """
    n = len(before)
    steps = tuple(dilation or [1] * n)
    if not any(before) and not any(after) and set(steps) <= {1}:
        return data
    shape = shape_of(data)
    offsets, starts, sizes, totals = [0, 0], [0, 0], list(shape[:2]), list(shape[:2])
    for size, low, high, step in zip(shape[2:], before, after, steps, strict=True):
        total = low + (size - 1) * step + 1 + high
        first = max(0, -(low // step))
        last = min(size - 1, (total - 1 - low) // step)
        offsets.append(low + first * step)
        starts.append(first)
        sizes.append(last - first + 1)
        totals.append(total)
    kept = b.extract(data, starts, sizes)
    element = tensor_type(data).element_type
    background = b.filled(fill, TensorType(element, totals))
    return b.insert(kept, background, offsets, [1, 1, *steps] if set(steps) != {1} else None)


def _split_channels(b: LinalgBuilder, value: SSAValue, axis: int, groups: int) -> SSAValue:
    """Dimension `axis` as `[groups, size / groups]`."""
    shape = shape_of(value)
    return b.reshape(value, [*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]])


def _sliding(
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> list[AffineExpr]:
    """`output * stride + kernel * dilation` for each spatial dimension."""
    return [
        dim(o) * s + dim(k) * d
        for o, k, s, d in zip(spatial, kernel, strides, dilation, strict=True)
    ]


def _correlate(
    b: LinalgBuilder,
    data: SSAValue,
    weight: SSAValue,
    output: Tensor,
    *,
    groups: int,
    strides: Sequence[int],
    dilation: Sequence[int],
) -> SSAValue:
    """A convolution without padding. Loop dimensions: n, (group,) o, spatial..., c, kernel..."""
    shape = output.get_shape()
    n = len(shape) - 2
    extra = 1 if groups > 1 else 0
    if groups > 1:
        data, weight = _split_channels(b, data, 1, groups), _split_channels(b, weight, 0, groups)
        shape = (shape[0], groups, shape[1] // groups, *shape[2:])
    group = [dim(1)] if extra else []
    o = 1 + extra
    spatial, c = range(o + 1, o + 1 + n), o + 1 + n
    kernel = range(c + 1, c + 1 + n)
    reads = [
        Read(data, [dim(0), *group, dim(c), *_sliding(spatial, kernel, strides, dilation)]),
        Read(weight, [*group, dim(o), dim(c), *dims(kernel)]),
    ]
    type_ = TensorType(output.element_type, shape)
    result = contract(b, reads, type_, dims(range(len(shape))), [c, *kernel], c + 1 + n)
    return b.reshape(result, output.get_shape())


def _lower_conv(op: relay.ConvOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    strides, padding, dilation = op.checked_window()
    n = op.SPATIAL_RANK
    data = padded(b, op.data, padding[:n], padding[n:], 0)
    output = tensor_type(op.output)
    groups = op.groups.value.data
    return [
        _correlate(b, data, op.weight, output, groups=groups, strides=strides, dilation=dilation)
    ]


def _lower_conv_transpose(op: relay.ConvTransposeOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    """A convolution of the data spread by `strides` with the kernel turned around."""
    strides, padding, dilation = op.checked_window()
    n, output = op.SPATIAL_RANK, tensor_type(op.output)
    kernel, groups = shape_of(op.weight), op.groups.value.data
    reach = [(size - 1) * d for size, d in zip(kernel[2:], dilation, strict=True)]
    before = [r - p for r, p in zip(reach, padding[:n], strict=True)]
    extra = ints(op.output_padding)
    after = [r - p + e for r, p, e in zip(reach, padding[n:], extra, strict=True)]
    data = padded(b, op.data, before, after, 0, strides)
    weight = _turned(b, op.weight, groups)
    return [_correlate(b, data, weight, output, groups=groups, strides=[1] * n, dilation=dilation)]


def _turned(b: LinalgBuilder, weight: SSAValue, groups: int) -> SSAValue:
    """`[C, O / groups, kernel...]` as `[O, C / groups, kernel...]`, the kernel backwards."""
    c, o, *kernel = shape_of(weight)
    if isinstance(weight.owner, ConstantOp):
        return b.constant(_turned_array(weight.owner.array, groups), "turned_kernel")
    split = b.reshape(weight, [groups, c // groups, o, *kernel])
    backwards = [dim(3 + axis) * -1 + (size - 1) for axis, size in enumerate(kernel)]
    type_ = TensorType(tensor_type(weight).element_type, [groups, o, c // groups, *kernel])
    turned = b.generic(
        [Read(split, [dim(0), dim(2), dim(1), *backwards])],
        type_,
        lambda _, x: x,
        name="turn_kernel",
    )
    return b.reshape(turned, [groups * o, c // groups, *kernel])


def _turned_array(array: Array, groups: int) -> Array:
    c, o, *kernel = array.shape
    spatial = tuple(range(3, 3 + len(kernel)))
    split = np.flip(array.reshape(groups, c // groups, o, *kernel), spatial)
    return np.moveaxis(split, 1, 2).reshape(groups * o, c // groups, *kernel)


def _pool(b: LinalgBuilder, op: relay.PoolOp, data: SSAValue, fill: float, name: str) -> SSAValue:
    """Each window of `data` combined by a binary op; elements outside count as `fill`.

    Large windows are folded along one dimension after the other: 3 + 3 elements, not 3 * 3.
    """
    strides, padding, dilation = op.checked_window()
    counts, pool = shape_of(op.output)[2:], ints(op.pool_size)
    windows = [_Windows(*sizes) for sizes in zip(counts, pool, strides, dilation, strict=True)]
    reach = zip(windows, shape_of(data)[2:], padding, strict=False)
    after = [max(0, along.reach - size - low) for along, size, low in reach]
    data = padded(b, data, padding[: len(pool)], after, fill)
    if prod(pool) <= sum(pool):
        return _fold_windows(b, data, windows, fill, name)
    for axis in range(len(pool)):
        untouched = [_Windows(size, 1, 1, 1) for size in shape_of(data)[2:]]
        only = [*untouched[:axis], windows[axis], *untouched[axis + 1 :]]
        data = _fold_windows(b, data, only, fill, name)
    return data


@dataclass(frozen=True)
class _Windows:
    """`count` windows of `size` elements along a dimension."""

    count: int
    size: int
    stride: int
    dilation: int

    @property
    def reach(self) -> int:
        """The elements from the first one of the first window to the last one of the last."""
        return (self.count - 1) * self.stride + (self.size - 1) * self.dilation + 1


def _fold_windows(
    b: LinalgBuilder, data: SSAValue, windows: Sequence[_Windows], fill: float, name: str
) -> SSAValue:
    """The windows of `data [N, C, spatial...]`; those of few elements are written out."""
    n, pool = len(windows), [along.size for along in windows]
    shape = [*shape_of(data)[:2], *(along.count for along in windows)]
    strides, dilation = [along.stride for along in windows], [along.dilation for along in windows]
    type_ = TensorType(tensor_type(data).element_type, shape)
    if prod(pool) > _MOST_ELEMENTS:
        spatial, kernel = range(2, 2 + n), range(2 + n, 2 + 2 * n)
        exprs = [dim(0), dim(1), *_sliding(spatial, kernel, strides, dilation)]
        return b.reduce(
            [Read(data, exprs), window(b, pool, first=2 + n)],
            b.filled(fill, type_),
            dims(range(2 + n)),
            list(kernel),
            2 + 2 * n,
            lambda s, x, _, result: s.binary(name, result, x),
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
    return b.elementwise(elements, type_, _folded(name))


def _folded(name: str) -> Body:
    def body(s: Scalars, *values: SSAValue) -> SSAValue:
        return reduce(lambda x, y: s.binary(name, x, y), values)

    return body


def _lower_max_pool(op: relay.MaxPoolOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    least, _ = bounds(tensor_type(op.data).element_type)
    return [_pool(b, op, op.data, least, "max")]


def _lower_avg_pool(op: relay.AvgPoolOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    output = tensor_type(op.output)
    element = accumulator_type(output.element_type)
    summed = _pool(b, op, b.cast(op.data, element), 0, "add")
    counts = _window_counts(op).astype(numpy_dtype(element))
    if len(np.unique(counts)) == 1:
        counts = counts.reshape(-1)[0]
    divisor = b.constant(np.array(counts), "window_counts")
    result = b.elementwise(
        [summed, divisor], tensor_type(summed), lambda s, x, count: s.div(x, count)
    )
    return [b.cast(result, output.element_type)]


def _window_counts(op: relay.AvgPoolOp) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """By how many elements each window is divided, `[spatial...]`."""
    strides, padding, dilation = op.checked_window()
    n, pool = op.SPATIAL_RANK, ints(op.pool_size)
    counts = np.ones((), np.int64)
    for axis in range(n):
        size, low, high = shape_of(op.data)[axis + 2], padding[axis], padding[axis + n]
        first, last = (-low, size + high) if op.count_include_pad.value.data else (0, size)
        starts = np.arange(shape_of(op.output)[axis + 2]) * strides[axis] - low
        positions = starts[:, None] + np.arange(pool[axis]) * dilation[axis]
        inside = ((positions >= first) & (positions < last)).sum(axis=1)
        counts = counts[..., None] * np.maximum(inside, 1)
    return counts


def _lower_global_max_pool(op: relay.GlobalPoolOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    least, _ = bounds(tensor_type(op.data).element_type)
    return [reductions.fold(b, op.data, _spatial(op), "max", least)]


def _lower_global_avg_pool(op: relay.GlobalPoolOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    return [b.cast(reductions.mean(b, op.data, _spatial(op)), tensor_type(op.output).element_type)]


def _spatial(op: relay.GlobalPoolOp) -> range:
    return range(2, 2 + op.SPATIAL_RANK)


FUNCTIONS: Lowerings = {
    **dict.fromkeys((relay.Conv1DOp, relay.Conv2DOp, relay.Conv3DOp), _lower_conv),
    **dict.fromkeys(
        (relay.Conv1DTransposeOp, relay.Conv2DTransposeOp, relay.Conv3DTransposeOp),
        _lower_conv_transpose,
    ),
    **dict.fromkeys((relay.MaxPool1DOp, relay.MaxPool2DOp, relay.MaxPool3DOp), _lower_max_pool),
    **dict.fromkeys((relay.AvgPool1DOp, relay.AvgPool2DOp, relay.AvgPool3DOp), _lower_avg_pool),
    **dict.fromkeys(
        (relay.GlobalMaxPool1DOp, relay.GlobalMaxPool2DOp, relay.GlobalMaxPool3DOp),
        _lower_global_max_pool,
    ),
    **dict.fromkeys(
        (relay.GlobalAvgPool1DOp, relay.GlobalAvgPool2DOp, relay.GlobalAvgPool3DOp),
        _lower_global_avg_pool,
    ),
}
