"""Convolutions and pools: windows over explicitly padded data."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr

from byoc_mlir.dialects.relay import window as relay
from byoc_mlir.dialects.relay.base import (
    Tensor,
    ints,
    shape_of,
    sizes_of,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.constant import ConstantOp, derived_array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
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
from byoc_mlir.lowering.relay_to_linalg.kernel import Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.nn import contract, window
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars, accumulator_type, bounds

_MOST_ELEMENTS = 16
"""Windows of more elements are loops."""


def padded(
    b: LinalgBuilder,
    data: SSAValue,
    before: Sequence[int],
    after: Sequence[Size],
    fill: float,
) -> SSAValue:
    """`data [N, C, spatial...]` with its spatial dimensions extended by elements of `fill`."""
    if all(width == 0 for width in (*before, *after)):
        return data
    type_ = tensor_type(data)
    extents = zip(type_sizes(type_)[2:], before, after, strict=True)
    shape = [*type_sizes(type_)[:2], *(low + size + high for size, low, high in extents)]
    background = b.filled(fill, tensor_of(type_.element_type, shape))
    return b.insert(data, background, [0, 0, *before])


def _split_channels(b: LinalgBuilder, value: SSAValue, axis: int, groups: int) -> SSAValue:
    """Dimension `axis` as `[groups, size / groups]`."""
    shape = sizes_of(value)
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
    shape = type_sizes(output)
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
    type_ = tensor_of(output.element_type, shape)
    result = contract(b, reads, type_, dims(range(len(shape))), [c, *kernel], c + 1 + n)
    return b.reshape(result, type_sizes(output))


def _lower_conv(op: relay.ConvOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    strides, padding, dilation = op.checked_window()
    n = op.SPATIAL_RANK
    data = padded(b, op.data, padding[:n], padding[n:], 0)
    output = tensor_type(op.output)
    groups = op.groups.value.data
    if groups > 1 and shape_of(op.weight)[:2] == (groups, 1):
        return [_correlate_each(b, op, data)]
    return [
        _correlate(b, data, op.weight, output, groups=groups, strides=strides, dilation=dilation)
    ]


def _correlate_each(b: LinalgBuilder, op: relay.ConvOp, data: SSAValue) -> SSAValue:
    """A depthwise convolution of padded data. Loop dimensions: n, c, spatial..., kernel..."""
    output, n = tensor_type(op.output), op.SPATIAL_RANK
    strides, _, dilation = op.checked_window()
    spatial, kernel = range(2, 2 + n), range(2 + n, 2 + 2 * n)
    window = _sliding(spatial, kernel, strides, dilation)
    reads = [Read(data, [dim(0), dim(1), *window]), _channels_last(b, op.weight, kernel)]
    return contract(b, reads, output, dims(range(2 + n)), kernel, 2 + 2 * n)


def _channels_last(b: LinalgBuilder, weight: SSAValue, kernel: Sequence[int]) -> Read:
    """A weight `[C, 1, kernel...]`; constants as `[kernel..., C]`, which vectors of channels read
    at once.
    """
    channel = 1
    if not isinstance(weight.owner, ConstantOp):
        shape = shape_of(weight)
        return Read(b.reshape(weight, (shape[0], *shape[2:])), dims((channel, *kernel)))
    array = weight.owner.array
    last = derived_array(
        "channels_last", [array], lambda: np.ascontiguousarray(np.moveaxis(array[:, 0], 0, -1))
    )
    return Read(b.constant(last, "weight"), dims((*kernel, channel)))


def _lower_conv_transpose(op: relay.ConvTransposeOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    """The sum of the products of an element and a tap that meet, for each place of the output.

    Nothing is multiplied but elements and weights: an inserted zero times infinity would be NaN.
    """
    output = tensor_type(op.output)
    kernel, sizes = shape_of(op.weight)[2:], sizes_of(op.data)[2:]
    planes = prod(type_sizes(output)[:2])
    is_depthwise = sizes_of(op.data)[1] == op.groups.value.data
    k = Kernel(op, inputs=None if is_depthwise else [_tap_products(b, op)])
    target = k.outputs[0].reshaped(planes, *type_sizes(output)[2:])
    product = (
        _depthwise_product(k, op) if is_depthwise else _stored_product(k, (planes, *kernel, *sizes))
    )
    zero = k.constant(0, accumulator_type(output.element_type))
    with k.loops(target.sizes, cost=4 * prod(kernel)) as (plane, *place):
        total = k.variable(zero)
        with _meeting_taps(k, op, place) as (tap, element):
            total.value = total.value + product(k.index(plane), tap, element)
        target[(plane, *place)] = total.value.to(target.type)
    return k.finish(b)


_Product = Callable[[Num, Sequence[Index], Sequence[Index]], Num]
"""What a tap and an element of a plane of the output contribute."""


def _depthwise_product(k: Kernel, op: relay.ConvTransposeOp) -> _Product:
    """Of one input channel for each group, multiplied where it is needed."""
    wide = accumulator_type(tensor_type(op.output).element_type)
    channels = sizes_of(op.output)[1]
    of_group = shape_of(op.weight)[1]
    data = k.inputs[0].reshaped(prod(sizes_of(op.data)[:2]), *sizes_of(op.data)[2:])
    weight = k.inputs[1].reshaped(channels, *shape_of(op.weight)[2:])

    def product(plane: Num, tap: Sequence[Index], element: Sequence[Index]) -> Num:
        factor = weight[(plane % channels, *tap)].to(wide)
        return data[(plane / of_group, *element)].to(wide) * factor

    return product


def _stored_product(k: Kernel, shape: Sequence[Size]) -> _Product:
    """Of all input channels, multiplied and summed before: `[planes, kernel..., sizes...]`."""
    terms = k.inputs[0].reshaped(*shape)
    return lambda plane, tap, element: terms[(plane, *tap, *element)]


def _tap_products(b: LinalgBuilder, op: relay.ConvTransposeOp) -> SSAValue:
    """`[N, groups, O / groups * taps, elements]`, summed over the input channels."""
    batch, channels, *sizes = sizes_of(op.data)
    groups = op.groups.value.data
    depth, rows, columns = channels // groups, prod(shape_of(op.weight)[1:]), prod(sizes)
    data = b.reshape(op.data, [batch, groups, depth, columns])
    weight = b.reshape(op.weight, [groups, depth, rows])
    element = accumulator_type(tensor_type(op.output).element_type)
    type_ = tensor_of(element, [batch, groups, rows, columns])
    reads = [Read(weight, dims((1, 4, 2))), Read(data, dims((0, 1, 4, 3)))]
    return contract(b, reads, type_, dims(range(4)), [4], 5)


@contextmanager
def _meeting_taps(
    k: Kernel, op: relay.ConvTransposeOp, place: Sequence[Index]
) -> Generator[tuple[list[Index], list[Index]]]:
    """For each tap that takes an element to `place` of the output: the tap and the element."""
    strides, padding, dilation = op.checked_window()
    taps: list[Index] = []
    elements: list[Index] = []
    with ExitStack() as inside:
        for axis, size in enumerate(shape_of(op.weight)[2:]):
            shifted, stride, spread = (
                k.index(place[axis]) + padding[axis],
                strides[axis],
                dilation[axis],
            )
            first = shifted % stride if spread == 1 else 0
            tap = inside.enter_context(k.loop(size, first, stride if spread == 1 else 1))
            offset = shifted - tap * spread
            element = offset / stride
            meets = (offset >= 0) & (element < sizes_of(op.data)[axis + 2])
            if spread != 1:
                meets = meets & (offset % stride).equals(0)
            inside.enter_context(k.when(meets))
            taps.append(tap)
            elements.append(element)
        yield taps, elements


def _pool(b: LinalgBuilder, op: relay.PoolOp, data: SSAValue, fill: float, name: str) -> SSAValue:
    """Each window of `data` combined by a binary op; elements outside count as `fill`.

    Large windows are folded along one dimension after the other: 3 + 3 elements, not 3 * 3.
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
    """`count` windows of `size` elements along a dimension."""

    count: Size
    size: int
    stride: int
    dilation: int

    @property
    def reach(self) -> Size:
        """The elements from the first one of the first window to the last one of the last."""
        return (self.count - 1) * self.stride + (self.size - 1) * self.dilation + 1


def _behind(op: relay.PoolOp, windows: Sequence[_Windows], sizes: Sequence[Size]) -> list[Size]:
    """How many elements there must be behind each dimension of the data.

    Of symbolic sizes, the whole padding, where windows do not reach beyond it.
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
    """The windows of `data [N, C, spatial...]`; those of few elements are written out."""
    n, pool = len(windows), [along.size for along in windows]
    shape = [*sizes_of(data)[:2], *(along.count for along in windows)]
    strides, dilation = [along.stride for along in windows], [along.dilation for along in windows]
    type_ = tensor_of(tensor_type(data).element_type, shape)
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
    result = b.elementwise(
        [summed, _window_counts(b, op, element)],
        tensor_type(summed),
        lambda s, x, count: s.div(x, count),
    )
    return [b.cast(result, output.element_type)]


def _window_counts(b: LinalgBuilder, op: relay.AvgPoolOp, element: Attribute) -> SSAValue:
    """By how many elements each window is divided: `[spatial...]`, or one number for all."""
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
    """How many elements of a window are counted along an axis, at least one."""
    strides, padding, dilation = op.checked_window()
    spread, pool = dilation[axis], ints(op.pool_size)[axis]
    first, last = _counted_range(op, axis)
    start = k.index(place) * strides[axis] - padding[axis]
    before = (first - start).max(0) + (spread - 1)
    until = k.index(last) - start + (spread - 1)
    return ((until / spread).min(pool) - before / spread).max(1)


def _counted_range(op: relay.AvgPoolOp, axis: int) -> tuple[int, Size]:
    """The first element along an axis that counts, and the one behind the last."""
    _, padding, _ = op.checked_window()
    size, low, high = sizes_of(op.data)[axis + 2], padding[axis], padding[axis + op.SPATIAL_RANK]
    return (-low, size + high) if op.count_include_pad.value.data else (0, size)


def _known_counts(op: relay.AvgPoolOp) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The counts of all windows, where sizes are numbers."""
    strides, padding, dilation = op.checked_window()
    pool = ints(op.pool_size)
    counts = np.ones((), np.int64)
    for axis in range(op.SPATIAL_RANK):
        first, last = _counted_range(op, axis)
        starts = np.arange(shape_of(op.output)[axis + 2]) * strides[axis] - padding[axis]
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
