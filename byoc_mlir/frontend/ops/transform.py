"""Ops that move elements, and arithmetic on shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import transform as relay
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dialects.relay.elementwise import broadcast_shapes
from byoc_mlir.dialects.relay.shape import at_most, same
from byoc_mlir.dims import GREATEST_SIZE, Size, ceildiv, largest, smallest
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.iterated import slice_of_iteration
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Array, NodeRefused, Value
from byoc_mlir.limits import check_constant


@onnx_op("Constant")
def constant(
    context: NodeContext,
    *,
    sparse_value: Array | None = None,
    value: Array | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
    value_string: str | None = None,
    value_strings: Sequence[str] | None = None,
) -> Value:
    content = sparse_value if value is None else value
    if content is not None:
        return context.constant(content)
    if value_string is not None or value_strings is not None:
        return context.constant(value_strings if value_string is None else value_string, object)
    if value_float is not None or value_floats is not None:
        return context.constant(value_floats if value_float is None else value_float, np.float32)
    integers = value_ints if value_int is None else value_int
    if integers is None:
        raise NodeRefused("it has no value")
    return context.constant(integers, np.int64)


@onnx_op("ConstantOfShape")
def constant_of_shape(context: NodeContext, shape: Value, *, value: Array | None = None) -> Value:
    content = np.zeros(1, np.float32) if value is None else value
    if content.size != 1:
        raise VerifyException(f"value has {content.size} elements, accepted is one")
    if shape.computed is not None:
        _check_not_negative(shape.computed.flat)
        one = context.constant(content.reshape(()))
        return context.emit(relay.BroadcastToOp, one, shape=shape.computed.flat)
    sizes = context.ints(shape, "the shape")
    _check_not_negative(sizes)
    check_constant(sizes, content.itemsize, "the result of a ConstantOfShape")
    return context.constant(np.full(sizes, content.reshape(())))


def _check_not_negative(sizes: Sequence[Size]) -> None:
    if not all(at_most(0, size) for size in sizes):
        listed = ", ".join(map(str, sizes))
        raise VerifyException(f"the shape is [{listed}], accepted are sizes of 0 and more")


@onnx_op("Shape")
def shape_of(context: NodeContext, data: Value, *, start: int = 0, end: int | None = None) -> Value:
    return context.size_constant(data.sizes[start:end])


@onnx_op("Size")
def size_of(context: NodeContext, data: Value) -> Value:
    return context.size_constant(math.prod(data.sizes))


@onnx_op("Reshape")
def reshape(context: NodeContext, data: Value, shape: Value, *, allowzero: int = 0) -> Value:
    sizes: Sequence[Size] = context.sizes(shape, "the shape")
    if not allowzero:
        if any(size == 0 and axis >= data.rank for axis, size in enumerate(sizes)):
            raise NodeRefused(f"shape {list(sizes)} copies a dimension that {data.full_type} lacks")
        sizes = [data.sizes[axis] if size == 0 else size for axis, size in enumerate(sizes)]
    if sizes.count(-1) == 1 and math.prod(data.sizes) == 0:
        others = math.prod(size for size in sizes if size != -1)
        sizes = [0 if size == -1 and others != 0 else size for size in sizes]
    return context.emit(relay.ReshapeOp, data, newshape=sizes)


@onnx_op("Flatten")
def flatten(context: NodeContext, data: Value, *, axis: int = 1) -> Value:
    is_end = axis == data.rank or (data.rank, axis) == (0, 1)  # a scalar with the default axis
    axis = data.rank if is_end else normalize_axis(axis, data.rank)
    rows, columns = math.prod(data.sizes[:axis]), math.prod(data.sizes[axis:])
    return context.emit(relay.ReshapeOp, data, newshape=[rows, columns])


@onnx_op("Transpose")
def transpose(context: NodeContext, data: Value, *, perm: Sequence[int] | None = None) -> Value:
    axes = range(data.rank)[::-1] if perm is None else perm
    return context.emit(relay.TransposeOp, data, axes=axes)


@onnx_op("Squeeze")
def squeeze(context: NodeContext, data: Value, axes: Value | None = None) -> Value:
    if axes is None:
        along = [axis for axis, size in enumerate(data.sizes) if same(size, 1)]
    else:
        along = context.ints(axes, "axes")
    return context.emit(relay.SqueezeOp, data, axis=along)


@onnx_op("Unsqueeze")
def unsqueeze(context: NodeContext, data: Value, axes: Value) -> Value:
    return context.emit(relay.ExpandDimsOp, data, axis=context.ints(axes, "axes"))


@onnx_op("Expand")
def expand(context: NodeContext, data: Value, shape: Value) -> Value:
    target = broadcast_shapes(data.sizes, context.sizes(shape, "the shape"))
    return context.emit(relay.BroadcastToOp, data, shape=target)


@onnx_op("Concat")
def concat(context: NodeContext, *data: Value, axis: int = 1) -> Value:
    return context.emit(relay.ConcatenateOp, data, axis=axis)


@onnx_op("Split")
def split(
    context: NodeContext,
    data: Value,
    split: Value | None = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
) -> Sequence[Value]:
    if split is None:
        sections = _equal_sections(context, arith.size_along(data, axis), num_outputs)
    else:
        sections = context.sizes(split, "split")
    return context.emit_all(relay.SplitOp, data, sections=sections, axis=axis)


def _equal_sections(context: NodeContext, size: Size, num_outputs: int | None) -> Sequence[Size]:
    """Returns sections of equal size; from opset 18 on, the last ones may be smaller."""
    parts = len(context.output_names)
    if num_outputs not in (None, parts):
        raise VerifyException(f"num_outputs is {num_outputs}, accepted is {parts}, its outputs")
    if context.opset < 18:
        return [size // parts] * parts
    chunk = ceildiv(size, parts)
    return [largest(0, smallest(chunk, size - index * chunk)) for index in range(parts)]


@onnx_op("Slice")
def slice_(
    context: NodeContext,
    data: Value,
    starts: Value,
    ends: Value,
    axes: Value | None = None,
    steps: Value | None = None,
) -> Value:
    if starts.formula is not None or ends.formula is not None:
        return slice_of_iteration(context, data, starts, ends, axes, steps)
    first, last = context.sizes(starts, "starts"), context.sizes(ends, "ends")
    listed = range(len(first)) if axes is None else context.ints(axes, "axes")
    wanted = [1] * len(first) if steps is None else context.ints(steps, "steps")
    begin: list[Size] = [0] * data.rank
    end, strides = list(data.sizes), [1] * data.rank
    if 0 in wanted:
        raise NodeRefused("a step of 0 is not a slice")
    along = [normalize_axis(axis, data.rank) for axis in listed]
    for start, stop, axis, step in zip(first, last, along, wanted, strict=True):
        begin[axis], end[axis] = _clamped(start, stop, step, data.sizes[axis])
        strides[axis] = _stride(step, data.sizes[axis])
    return context.emit(relay.StridedSliceOp, data, begin=begin, end=end, strides=strides)


def _stride(step: int, size: Size) -> int:
    """Returns a slice's step, shortened to the axis's length if it is longer."""
    longest = max(1, size if isinstance(size, int) else GREATEST_SIZE)
    return max(-longest, min(step, longest))


def _clamped(start: Size, stop: Size, step: int, size: Size) -> tuple[Size, Size]:
    """Returns begin and end of a slice, clamped to an axis of `size`."""
    if isinstance(start, int) and isinstance(stop, int) and isinstance(size, int):
        first, last, _ = slice(start, stop, step).indices(size)
        if step > 0:
            return first, max(first, last)
        # a start before the first element is that, where Python takes none
        return max(first, last, min(0, size - 1)), last
    least, most = (0, size) if step > 0 else (-1, size - 1)
    begin, end = (_place(bound, least, most, size) for bound in (start, stop))
    if step > 0:
        return begin, largest(begin, end)
    return largest(begin, end, smallest(0, size - 1)), end


def _place(bound: Size, least: int, most: Size, size: Size) -> Size:
    """Returns a slice's bound, counted from the front and clamped to `least` and `most`."""
    if isinstance(bound, int) and abs(bound) >= _FAR:
        return most if bound > 0 else least
    return smallest(bound, most) if at_most(0, bound) else largest(bound + size, least)


_FAR = (1 << 31) - 1
"""Minimum bound that stands for the end of an axis of any size, as exporters write it."""


@onnx_op("Pad", since=2)
def pad(
    context: NodeContext,
    data: Value,
    pads: Value,
    value: Value | None = None,
    axes: Value | None = None,
    *,
    mode: str = "constant",
) -> Value:
    widths = context.sizes(pads, "pads")
    along = range(data.rank) if axes is None else context.ints(axes, "axes")
    if value is None or mode != "constant":
        return _padded(context, data, widths, along, 0.0, mode)
    if math.prod(value.sizes) != 1:
        raise VerifyException(f"the padding value has shape {list(value.sizes)}")
    if value.constant is not None:
        number = value.constant.reshape(-1)[0].item()
        if not isinstance(number, int) or int(float(number)) == number:
            return _padded(context, data, widths, along, float(number), mode)
    # computed at run time, or an integer that the property, a float, cannot hold
    inside = arith.broadcast(context, context.constant(np.ones((), np.bool_)), data.sizes)
    kept = _padded(context, inside, widths, along, 0.0, mode)
    padded = _padded(context, data, widths, along, 0.0, mode)
    return arith.where(context, kept, padded, arith.reshape(context, value, []))


@onnx_op("Pad")
def pad_by_paddings(
    context: NodeContext,
    data: Value,
    paddings: Value,
    value: Value | None = None,
    *,
    mode: str = "constant",
) -> Value:
    return pad(context, data, paddings, value, mode=mode)


def _padded(
    context: NodeContext,
    data: Value,
    pads: Sequence[Size],
    axes: Sequence[int],
    number: float,
    mode: str,
) -> Value:
    if len(pads) != 2 * len(axes):
        raise NodeRefused(f"pads must have {2 * len(axes)} entries, found {list(pads)}")
    widths: list[Size] = [0] * (2 * data.rank)
    for index, axis in enumerate(axes):
        position = 2 * normalize_axis(axis, data.rank)
        widths[position : position + 2] = [pads[index], pads[index + len(axes)]]
    return context.emit(relay.PadOp, data, pad_width=widths, pad_value=number, pad_mode=mode)
