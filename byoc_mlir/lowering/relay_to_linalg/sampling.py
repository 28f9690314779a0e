"""Ops that read images at computed positions: grids, deformable convolutions."""

from __future__ import annotations

import math as pymath
import operator
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import math
from xdsl.dialects.builtin import Float64Type, TensorType, f32, f64, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay import vision as relay
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.resampling import SampledAxis
from byoc_mlir.dims import Size
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings, Read, dims
from byoc_mlir.lowering.relay_to_linalg.image import rounded
from byoc_mlir.lowering.relay_to_linalg.kernel import INDEX, Buffer, Index, Kernel, Num
from byoc_mlir.lowering.relay_to_linalg.resampling import functions_of

_BEYOND = 8
"""Distance from the data at which coordinates are clamped: more than the longest kernel."""


@dataclass(frozen=True)
class _Tap:
    """Tap along one axis: its position, its weight, and a flag that is set if it is in the data."""

    place: Index
    weight: Num | int
    inside: Num | None


def float_type(element: Attribute) -> Attribute:
    """Returns the type in which values of an element type are interpolated."""
    return f64 if isinstance(element, Float64Type) else f32


def to_place(k: Kernel, value: Num, low: int, high: Size) -> Num:
    """Emits an integral float as an index, clamped to [low, high]; NaN becomes `low`."""
    above = k.select(value >= low, value, low)
    return k.select(above <= high, above, high).to(i64).to(INDEX)


def _taps(k: Kernel, axis: SampledAxis, x: Num, type_: Attribute) -> list[_Tap]:
    """Returns the taps along an axis for a coordinate, with weights of a type."""
    base = axis.base(x)
    first = to_place(k, base, -_BEYOND, axis.size + _BEYOND)
    taps: list[_Tap] = []
    for number, weight in axis.weights(x - base).items():
        place, inside = first + number, None
        if axis.padding == "zeros":
            inside = (place >= 0) & (place < axis.size)
        elif axis.padding == "reflection":
            mirrored = axis.mirrored(place.to(f32))
            place = to_place(k, mirrored.unary(math.TruncOp), 0, axis.size - 1)
        weight = weight.to(type_) if isinstance(weight, Num) else weight
        taps.append(_Tap(place.within(0, axis.size - 1), weight, inside))
    return taps


def _interpolated(
    k: Kernel,
    data: Buffer,
    leading: Sequence[Index],
    axes: Sequence[Sequence[_Tap]],
    type_: Attribute,
    inside: Num | None = None,
) -> Num:
    """Emits the weighted sum over the taps of all axes; elements outside count as zero."""
    if not axes:
        element = data[leading].to(type_)
        return element if inside is None else k.select(inside, element, 0)
    total: Num | None = None
    for tap in axes[0]:
        both = inside
        if tap.inside is not None:
            both = tap.inside if inside is None else inside & tap.inside
        part = _interpolated(k, data, [*leading, tap.place], axes[1:], type_, both)
        part *= tap.weight
        total = part if total is None else total + part
    assert total is not None
    return total


def _lower_grid_sample(op: relay.GridSampleOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    k = Kernel(op)
    data, grid = k.inputs
    element = data.type
    type_ = element if op.method.data == "nearest" else float_type(element)
    batches, channels, *sizes = data.sizes
    rank, coordinates = len(sizes), float_type(grid.type)
    sampled = [op.sampled_axis(operator.index(size), functions_of(k)) for size in sizes]
    taps_of_axis = {"nearest": 1, "linear": 2, "cubic": 4}[op.method.data]
    cost = 20 * rank + channels * taps_of_axis**rank
    with k.loops([batches, *grid.sizes[1:-1]], cost=cost) as (n, *at):
        axes = [
            _taps(
                k, axis, axis.coordinate(grid[(n, *at, rank - 1 - number)].to(coordinates)), type_
            )
            for number, axis in enumerate(sampled)
        ]
        with k.sequential([1, channels]) as (_, c):
            value = _interpolated(k, data, [n, c], axes, type_)
            k.outputs[0][(n, c, *at)] = rounded(value, element) if type_ != element else value
    return k.finish(b)


def _columns(op: relay.DeformableConv2DOp, b: LinalgBuilder) -> SSAValue:
    """Computes `[N, C, kh * kw, h, w]`: the sampled value of each kernel tap, times its mask."""
    shape, kernel, result = shape_of(op.data), shape_of(op.weight), shape_of(op.output)
    element = tensor_type(op.data).element_type
    type_ = TensorType(element, [shape[0], shape[1], kernel[2] * kernel[3], *result[2:]])
    inputs = [op.data, op.offset, *([op.mask] if op.mask is not None else [])]
    k = Kernel(op, inputs, [type_])
    groups = op.deformable_groups.value.data
    data = k.inputs[0].reshaped(shape[0], groups, shape[1] // groups, *shape[2:])
    offset = k.inputs[1].reshaped(shape[0], groups, kernel[2], kernel[3], 2, *result[2:])
    columns = k.outputs[0].reshaped(
        shape[0], groups, shape[1] // groups, kernel[2], kernel[3], *result[2:]
    )
    steps, around, spread = ints(op.strides), ints(op.padding), ints(op.dilation)
    number = float_type(element)
    bounds = [shape[0], groups, kernel[2], kernel[3], *result[2:]]
    with k.loops(bounds, cost=20 + 8 * shape[1] // groups) as at:
        n, g, *rest = at
        taps_at, places = rest[:2], rest[2:]
        sampled = [
            (k.index(place) * step + k.index(tap) * dilation - pad).to(number)
            + offset[(n, g, *taps_at, axis, *places)].to(number)
            for axis, (place, step, tap, dilation, pad) in enumerate(
                zip(places, steps, taps_at, spread, around, strict=False)
            )
        ]
        axes = [
            _taps(k, SampledAxis(size, functions=functions_of(k)), x, number)
            for x, size in zip(sampled, shape[2:], strict=True)
        ]
        mask = None
        if op.mask is not None:
            masks = k.inputs[2].reshaped(shape[0], groups, *kernel[2:], *result[2:])
            mask = masks[at].to(number)
        with k.sequential([1, shape[1] // groups]) as (_, c):
            value = _interpolated(k, data, [n, g, c], axes, number)
            columns[(n, g, c, *taps_at, *places)] = value if mask is None else value * mask
    return k.finish(b)[0]


def _lower_deformable_conv2d(op: relay.DeformableConv2DOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    n, out, *places = shape_of(op.output)
    groups, weight = op.groups.value.data, shape_of(op.weight)
    depth, count = pymath.prod(weight[1:]), pymath.prod(places)
    columns = b.reshape(_columns(op, b), [n, groups, depth, count])
    kernel = b.reshape(op.weight, [groups, out // groups, depth])
    element = tensor_type(op.data).element_type
    start = b.filled(0, TensorType(element, [n, groups, out // groups, count]))
    product = b.reduce(
        [Read(columns, dims([0, 1, 4, 3])), Read(kernel, dims([1, 2, 4]))],
        start,
        dims([0, 1, 2, 3]),
        [4],
        5,
        lambda s, x, w, total: s.add(total, s.mul(x, w)),
    )
    return [b.reshape(product, [n, out, *places])]


FUNCTIONS: Lowerings = {
    relay.DeformableConv2DOp: _lower_deformable_conv2d,
    relay.GridSampleOp: _lower_grid_sample,
}
