"""Ops that move elements: views where possible, copies where not."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr

from byoc_mlir.dialects.relay import transform as relay
from byoc_mlir.dialects.relay.base import RelayOp, ints, shape_of, tensor_type
from byoc_mlir.lowering.relay_to_linalg.builder import (
    LinalgBuilder,
    Lowerings,
    Read,
    broadcast,
    dim,
)


def _lower_reshape(op: RelayOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    return [b.reshape(op.operands[0], shape_of(op.results[0]))]


def _lower_transpose(op: relay.TransposeOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    axes, type_ = ints(op.axes), tensor_type(op.output)
    shape = shape_of(op.data)
    moved = [axis for axis in axes if shape[axis] != 1]
    if moved == sorted(moved):
        return [b.reshape(op.data, type_.get_shape())]
    exprs = [dim(axes.index(axis)) for axis in range(len(axes))]
    return [b.generic([Read(op.data, exprs)], type_, lambda _, x: x)]


def _lower_broadcast_to(op: relay.BroadcastToOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    type_ = tensor_type(op.output)
    if shape_of(op.data) == type_.get_shape():
        return [op.data]
    return [b.generic([broadcast(op.data, type_.get_shape())], type_, lambda _, x: x)]


def joined(b: LinalgBuilder, parts: Sequence[SSAValue], axis: int) -> SSAValue:
    """The tensors one after the other along `axis`."""
    if len(parts) == 1:
        return parts[0]
    shape = list(shape_of(parts[0]))
    shape[axis] = sum(shape_of(part)[axis] for part in parts)
    result = b.empty(TensorType(tensor_type(parts[0]).element_type, shape))
    position = 0
    for part in parts:
        size = shape_of(part)[axis]
        offsets = [position if d == axis else 0 for d in range(len(shape))]
        if size:
            result = b.insert(part, result, offsets)
        position += size
    return result


def _lower_concatenate(op: relay.ConcatenateOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    return [joined(b, op.data, op.positive_axis)]


def _lower_split(op: relay.SplitOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    axis, start = op.positive_axis, 0
    parts: list[SSAValue] = []
    for output in op.outputs:
        shape = shape_of(output)
        offsets = [start if d == axis else 0 for d in range(len(shape))]
        parts.append(b.extract(op.data, offsets, shape))
        start += shape[axis]
    return parts


def _lower_strided_slice(op: relay.StridedSliceOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    begin, strides, type_ = ints(op.begin), ints(op.strides), tensor_type(op.output)
    if all(stride > 0 for stride in strides):
        return [b.extract(op.data, begin, type_.get_shape(), strides)]
    ranges = list(zip(begin, strides, type_.get_shape(), strict=True))
    return [strided(b, op.data, ranges)]


def strided(b: LinalgBuilder, data: SSAValue, ranges: Sequence[tuple[int, int, int]]) -> SSAValue:
    """A copy of the elements `start + step * n`, n < count, of each dimension; steps may be 0 or
    negative.
    """
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
    widths, type_ = ints(op.pad_width), tensor_type(op.output)
    before, after = widths[::2], widths[1::2]
    if op.pad_mode.data == "constant":
        return [_constant_pad(b, op.data, before, op.pad_value.value.data, type_.get_shape())]
    result = op.data
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        sources = _padded_positions(op.pad_mode.data, shape_of(op.data)[axis], low, high)
        result = taken(b, result, axis, sources)
    return [result]


def _constant_pad(
    b: LinalgBuilder,
    data: SSAValue,
    before: Sequence[int],
    value: float,
    shape: Sequence[int],
) -> SSAValue:
    starts = [max(0, -low) for low in before]
    offsets = [max(0, low) for low in before]
    sizes = [
        max(0, min(size - start, total - offset))
        for size, start, total, offset in zip(shape_of(data), starts, shape, offsets, strict=True)
    ]
    if sizes == list(shape):
        return b.extract(data, starts, sizes)
    background = b.filled(value, TensorType(tensor_type(data).element_type, shape))
    if 0 in sizes:
        return background
    return b.insert(b.extract(data, starts, sizes), background, offsets)


def _padded_positions(mode: str, size: int, low: int, high: int) -> list[int]:
    """Which element of a dimension of `size` stands at each position of the padded one."""
    positions = range(-low, size + high)
    if mode == "edge":
        return [min(max(position, 0), size - 1) for position in positions]
    if mode == "wrap":
        return [position % size for position in positions]
    period = max(1, 2 * (size - 1))
    return [min(position % period, period - position % period) for position in positions]


def taken(b: LinalgBuilder, data: SSAValue, axis: int, sources: Sequence[int]) -> SSAValue:
    """`data` with dimension `axis` replaced by the elements at the static positions `sources`."""
    shape = shape_of(data)
    if list(sources) == list(range(shape[axis])):
        return data
    whole = [(0, 1, size) for size in shape]
    parts = [strided(b, data, [*whole[:axis], run, *whole[axis + 1 :]]) for run in _runs(sources)]
    return joined(b, parts, axis)


def _runs(positions: Sequence[int]) -> list[tuple[int, int, int]]:
    """The sequence as arithmetic progressions (start, step, length), greedily."""
    runs: list[tuple[int, int, int]] = []
    at = 0
    while at < len(positions):
        start, length = positions[at], 1
        step = positions[at + 1] - start if at + 1 < len(positions) else 0
        while at + length < len(positions) and positions[at + length] == start + step * length:
            length += 1
        if length <= 2 and abs(step) > 1:
            step, length = 0, 1
        runs.append((start, step, length))
        at += length
    return runs


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
