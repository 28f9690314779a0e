"""Convolutions: windows over explicitly padded data."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

import numpy as np
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from byoc_mlir.dialects.relay import window as relay
from byoc_mlir.dialects.relay.base import (
    shape_of,
    sizes_of,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.constant import ConstantOp, derived_array
from byoc_mlir.dims import Size
from byoc_mlir.lowering.relay_to_linalg.builder import (
    LinalgBuilder,
    Lowerings,
    Read,
    dim,
    dims,
)
from byoc_mlir.lowering.relay_to_linalg.computed_types import accumulator_type
from byoc_mlir.lowering.relay_to_linalg.kernel import Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.nn import contract


def padded(
    b: LinalgBuilder,
    data: SSAValue,
    before: Sequence[int],
    after: Sequence[Size],
    fill: float,
) -> SSAValue:
    """Pads the spatial dimensions of `data [N, C, spatial...]` with elements of `fill`."""
    if all(width == 0 for width in (*before, *after)):
        return data
    type_ = tensor_type(data)
    extents = zip(type_sizes(type_)[2:], before, after, strict=True)
    shape = [*type_sizes(type_)[:2], *(low + size + high for size, low, high in extents)]
    background = b.filled(fill, tensor_of(type_.element_type, shape))
    return b.insert(data, background, [0, 0, *before])


def _split_channels(b: LinalgBuilder, value: SSAValue, axis: int, groups: int) -> SSAValue:
    """Splits dimension `axis` into `[groups, size / groups]`."""
    shape = sizes_of(value)
    return b.reshape(value, [*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]])


def sliding(
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
) -> list[AffineExpr]:
    """Returns `output * stride + kernel * dilation` for each spatial dimension."""
    return [
        dim(o) * s + dim(k) * d
        for o, k, s, d in zip(spatial, kernel, strides, dilation, strict=True)
    ]


def _correlate(b: LinalgBuilder, op: relay.ConvOp, data: SSAValue) -> SSAValue:
    """Computes a convolution of padded data. Loops: n, (group,) o, spatial..., c, kernel..."""
    output, weight, groups = tensor_type(op.output), op.weight, op.groups.value.data
    strides, _, dilation = op.checked_window()
    shape, n = type_sizes(output), op.SPATIAL_RANK
    extra = 1 if groups > 1 else 0
    if groups > 1:
        data, weight = _split_channels(b, data, 1, groups), _split_channels(b, weight, 0, groups)
        shape = (shape[0], groups, shape[1] // groups, *shape[2:])
    group = [dim(1)] if extra else []
    o = 1 + extra
    spatial, c = range(o + 1, o + 1 + n), o + 1 + n
    kernel = range(c + 1, c + 1 + n)
    reads = [
        Read(data, [dim(0), *group, dim(c), *sliding(spatial, kernel, strides, dilation)]),
        Read(weight, [*group, dim(o), dim(c), *dims(kernel)]),
    ]
    type_ = tensor_of(output.element_type, shape)
    result = contract(b, reads, type_, dims(range(len(shape))), [c, *kernel], c + 1 + n)
    return b.reshape(result, type_sizes(output))


def _lower_conv(op: relay.ConvOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    _, padding, _ = op.checked_window()
    n, groups = op.SPATIAL_RANK, op.groups.value.data
    data = padded(b, op.data, padding[:n], padding[n:], 0)
    is_depthwise = groups > 1 and shape_of(op.weight)[:2] == (groups, 1)
    return [(_correlate_each if is_depthwise else _correlate)(b, op, data)]


def _correlate_each(b: LinalgBuilder, op: relay.ConvOp, data: SSAValue) -> SSAValue:
    """Computes a depthwise convolution of padded data. Loops: n, c, spatial..., kernel..."""
    output, n = tensor_type(op.output), op.SPATIAL_RANK
    strides, _, dilation = op.checked_window()
    spatial, kernel = range(2, 2 + n), range(2 + n, 2 + 2 * n)
    window = sliding(spatial, kernel, strides, dilation)
    reads = [Read(data, [dim(0), dim(1), *window]), _channels_last(b, op.weight, kernel)]
    return contract(b, reads, output, dims(range(2 + n)), kernel, 2 + 2 * n)


def _channels_last(b: LinalgBuilder, weight: SSAValue, kernel: Sequence[int]) -> Read:
    """Returns the input for a weight `[C, 1, kernel...]`.

    A constant becomes `[kernel..., C]`, for vectors of channels.
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
    """Lowers a transposed convolution.

    Each output position sums the products of the elements and taps that contribute to it. No zeros
    are inserted between elements, since zero times infinity would be NaN.
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
"""Function that returns the contribution of a tap and an element to a plane of the output."""


def _depthwise_product(k: Kernel, op: relay.ConvTransposeOp) -> _Product:
    """Returns the product of an element and a tap, computed on demand, for one input channel per
    group.
    """
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
    """Returns the product of an element and a tap, summed over input channels and stored in
    `[planes, kernel..., sizes...]`.
    """
    terms = k.inputs[0].reshaped(*shape)
    return lambda plane, tap, element: terms[(plane, *tap, *element)]


def _tap_products(b: LinalgBuilder, op: relay.ConvTransposeOp) -> SSAValue:
    """Computes `[N, groups, O / groups * taps, elements]`, summed over the input channels."""
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
    """Emits loops over the pairs of a tap and an element that contribute to `place`."""
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


FUNCTIONS: Lowerings = {
    **dict.fromkeys(relay.CONV.values(), _lower_conv),
    **dict.fromkeys(relay.CONV_TRANSPOSE.values(), _lower_conv_transpose),
}
