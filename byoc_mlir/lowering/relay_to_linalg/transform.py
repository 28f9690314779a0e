"""Ops that move elements: views where possible, else copies."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr

from byoc_mlir.dialects.relay import transform as relay
from byoc_mlir.dialects.relay.base import (
    RelayOp,
    ints,
    shape_of,
    size_list,
    sizes_of,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.dims import Size, largest, smallest
from byoc_mlir.lowering.relay_to_linalg.builder import (
    LinalgBuilder,
    Lowerings,
    Read,
    broadcast,
    dim,
)
from byoc_mlir.lowering.relay_to_linalg.index import around
from byoc_mlir.lowering.relay_to_linalg.kernel import Kernel, Num

_MOST_INTERLEAVED = 4
"""Maximum number of tensors that one loop interleaves; LLVM shuffles vectors for so many."""


def _lower_reshape(op: RelayOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    return [b.reshape(op.operands[0], sizes_of(op.results[0]))]


def _lower_transpose(op: relay.TransposeOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    axes, type_ = ints(op.axes), tensor_type(op.output)
    shape = sizes_of(op.data)
    moved = [axis for axis in axes if shape[axis] != 1]
    if moved == sorted(moved):
        return [b.reshape(op.data, type_sizes(type_))]
    exprs = [dim(axes.index(axis)) for axis in range(len(axes))]
    return [b.generic([Read(op.data, exprs)], type_, lambda _, x: x)]


def _lower_broadcast_to(op: relay.BroadcastToOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    type_ = tensor_type(op.output)
    if sizes_of(op.data) == type_sizes(type_):
        return [op.data]
    return [b.generic([broadcast(op.data, type_sizes(type_))], type_, lambda _, x: x)]


def joined(b: LinalgBuilder, parts: Sequence[SSAValue], axis: int) -> SSAValue:
    """Concatenates tensors along `axis`."""
    if len(parts) == 1:
        return parts[0]
    shape = list(sizes_of(parts[0]))
    shape[axis] = sum(sizes_of(part)[axis] for part in parts)
    result = b.empty(tensor_of(tensor_type(parts[0]).element_type, shape))
    position: Size = 0
    for part in parts:
        size = sizes_of(part)[axis]
        offsets = [position if d == axis else 0 for d in range(len(shape))]
        if size != 0:
            result = b.insert(part, result, offsets)
        position = position + size
    return result


def _lower_concatenate(op: relay.ConcatenateOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    if _is_interleaved(op):
        return _interleave(op, b)
    return [joined(b, op.data, op.positive_axis)]


def _is_interleaved(op: relay.ConcatenateOp) -> bool:
    """True if a few tensors have one element each in the last axis, in which they are joined."""
    last = len(sizes_of(op.output)) - 1
    is_last = op.positive_axis == last > 0
    is_few = 1 < len(op.data) <= _MOST_INTERLEAVED
    return is_last and is_few and all(sizes_of(part)[last] == 1 for part in op.data)


def _interleave(op: relay.ConcatenateOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    """Joins tensors of one element in the last axis, in one loop: copies one after the other would
    write each line of the result once for each tensor.
    """
    k = Kernel(op)
    result = k.outputs[0]
    with k.loops(result.sizes[:-1], cost=2 * len(k.inputs)) as at:
        for number, part in enumerate(k.inputs):
            result[[*at, number]] = part[[*at, 0]]
    return k.finish(b)


def _lower_split(op: relay.SplitOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    axis = op.positive_axis
    start: Size = 0
    parts: list[SSAValue] = []
    for output in op.outputs:
        shape = sizes_of(output)
        offsets = [start if d == axis else 0 for d in range(len(shape))]
        parts.append(b.extract(op.data, offsets, shape))
        start = start + shape[axis]
    return parts


def _lower_strided_slice(op: relay.StridedSliceOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    taken, strides = sizes_of(op.output), ints(op.strides)
    if all(stride > 0 for stride in strides):
        return [b.extract(op.data, size_list(op.begin), taken, strides)]
    if is_symbolic((*size_list(op.begin), *taken)):
        return _slice_by_positions(op, b)
    ranges = list(zip(ints(op.begin), strides, shape_of(op.output), strict=True))
    return [_strided(b, op.data, ranges)]


def _slice_by_positions(op: relay.StridedSliceOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    """Slices backward through symbolic sizes; the position of each element is computed."""
    k = Kernel(op)
    source, target = k.inputs[0], k.outputs[0]
    steps = list(zip(size_list(op.begin), ints(op.strides), strict=True))
    with k.loops(target.sizes, cost=2 * len(steps)) as at:
        target[at] = source[
            [
                k.index(position) * stride + start
                for position, (start, stride) in zip(at, steps, strict=True)
            ]
        ]
    return k.finish(b)


def _strided(b: LinalgBuilder, data: SSAValue, ranges: Sequence[tuple[int, int, int]]) -> SSAValue:
    """Copies the elements `start + step * n`, n < count, of each dimension, for any steps."""
    starts = [min(start, start + step * (count - 1)) for start, step, count in ranges]
    sizes = [abs(step) * (count - 1) + 1 if count else 0 for _, step, count in ranges]
    exprs = [
        dim(axis) * step + (start - first) if step and count != 1 else AffineConstantExpr(0)
        for axis, ((start, step, count), first) in enumerate(zip(ranges, starts, strict=True))
    ]
    type_ = TensorType(tensor_type(data).element_type, [count for _, _, count in ranges])
    if 0 in sizes:
        return b.empty(type_)
    return b.generic([Read(b.extract(data, starts, sizes), exprs)], type_, lambda _, x: x)


def _lower_pad(op: relay.PadOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    widths, shape = size_list(op.pad_width), sizes_of(op.output)
    before, after = widths[::2], widths[1::2]
    if op.pad_mode.data == "constant":
        return [_constant_pad(b, op.data, before, op.pad_value.value.data, shape)]
    if 0 in shape:
        return [b.empty(tensor_type(op.output))]
    kept = _cropped(b, op.data, before, after)
    low, high = ([largest(0, width) for width in side] for side in (before, after))
    return [_pad_by_edges(op, b, kept, low, high)]


def _cropped(
    b: LinalgBuilder, data: SSAValue, before: Sequence[Size], after: Sequence[Size]
) -> SSAValue:
    """Crops `data` by its negative padding."""
    starts = [largest(0, -low) for low in before]
    sizes = [
        size - start + smallest(0, high)
        for size, start, high in zip(sizes_of(data), starts, after, strict=True)
    ]
    return b.extract(data, starts, sizes)


def _pad_by_edges(
    op: relay.PadOp,
    b: LinalgBuilder,
    kept: SSAValue,
    low: Sequence[Size],
    high: Sequence[Size],
) -> SSAValue:
    """Pads one axis after the other: concatenates the edge before, the data, and the edge after."""
    result = kept
    for axis, (first, last) in enumerate(zip(low, high, strict=True)):
        ends = [
            None if count == 0 else _edge(op, b, result, axis, start, count)
            for start, count in ((-first, first), (sizes_of(kept)[axis], last))
        ]
        before, after = ends
        parts = [part for part in (before, result, after) if part is not None]
        result = joined(b, parts, axis)
    return result


def _edge(
    op: relay.PadOp, b: LinalgBuilder, data: SSAValue, axis: int, start: Size, count: Size
) -> SSAValue:
    """Computes `count` elements along an axis, from a position that may be outside of the data."""
    sizes = list(sizes_of(data))
    outer, size, inner = around(sizes, axis)
    sizes[axis] = count
    k = Kernel(op, [data], [tensor_of(tensor_type(data).element_type, sizes)])
    source = k.inputs[0].reshaped(outer, size, inner)
    target = k.outputs[0].reshaped(outer, count, inner)
    with k.loops([outer, count], cost=2 * inner) as (o, i):
        place = _repeated(k, op.pad_mode.data, k.index(i) + start, size)
        with k.sequential([inner]) as (n,):
            target[o, i, n] = source[o, place, n]
    return k.finish(b)[0]


def _repeated(k: Kernel, mode: str, position: Num, size: Size) -> Num:
    """Emits the position of the element that padding repeats at a position outside of the data."""
    if mode == "edge":
        return position.within(0, size - 1)
    period = largest(1, 2 * (size - 1)) if mode == "reflect" else size
    place = position.floor_remainder(period)
    return place.min(k.index(period) - place) if mode == "reflect" else place


def _constant_pad(
    b: LinalgBuilder,
    data: SSAValue,
    before: Sequence[Size],
    value: float,
    shape: Sequence[Size],
) -> SSAValue:
    starts = [largest(0, -low) for low in before]
    offsets = [largest(0, low) for low in before]
    sizes = [
        largest(0, smallest(size - start, total - offset))
        for size, start, total, offset in zip(sizes_of(data), starts, shape, offsets, strict=True)
    ]
    if sizes == list(shape):
        return b.extract(data, starts, sizes)
    background = b.filled(value, tensor_of(tensor_type(data).element_type, shape))
    if 0 in sizes:
        return background
    return b.insert(b.extract(data, starts, sizes), background, offsets)


FUNCTIONS: Lowerings = {
    relay.ReshapeOp: _lower_reshape,
    relay.SqueezeOp: _lower_reshape,
    relay.ExpandDimsOp: _lower_reshape,
    relay.TransposeOp: _lower_transpose,
    relay.BroadcastToOp: _lower_broadcast_to,
    relay.ConcatenateOp: _lower_concatenate,
    relay.SplitOp: _lower_split,
    relay.StridedSliceOp: _lower_strided_slice,
    relay.PadOp: _lower_pad,
}
