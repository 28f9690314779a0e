"""Rules of `fake-quantization-to-integer` for ops that only move elements.

The integer forms are exact, whatever the users of the result. `integer_products` explains what a
rule is.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from byoc_mlir.dialects.relay import RelayOp, image, index, pool, transform
from byoc_mlir.dialects.relay.base import ints, size_list
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.transforms.integer_products import Answer, Rule
from byoc_mlir.transforms.op_sequence import OpSequence
from byoc_mlir.transforms.quantised import Quantised, quantised, same_value
from byoc_mlir.transforms.rewriting import constant_array

Parameters: TypeAlias = dict[str, Any]


def _moved(
    op: RelayOp, integers: Quantised, new: OpSequence, properties: Parameters | None = None
) -> Answer:
    """Applies the op to the integers `integers` instead of its first operand."""
    if not integers.is_whole:
        return "its operand has parameters along an axis, accepted is one for the whole tensor"
    given = cast("Parameters", op.properties) if properties is None else properties
    value = new.add(type(op), integers.data, *op.operands[1:], **given)
    return Quantised(value, integers.scale, integers.zero_point)


def _move(op: RelayOp, new: OpSequence) -> Answer:
    integers = quantised(op.operands[0])
    return None if integers is None else _moved(op, integers, new)


def _transpose(op: transform.TransposeOp, new: OpSequence) -> Answer:
    """Transposes the integers; the axis of per-axis parameters moves with the data."""
    integers = quantised(op.data)
    if integers is None or integers.is_whole:
        return _move(op, new)
    value = new.add(transform.TransposeOp, integers.data, axes=op.axes)
    axis = ints(op.axes).index(integers.axis)
    return Quantised(value, integers.scale, integers.zero_point, axis)


def _may_add(op: transform.PadOp) -> bool:
    """True if a `pad` may add elements, and not only remove some."""
    widths = size_list(op.pad_width)
    return is_symbolic(widths) or any(width > 0 for width in ints(op.pad_width))


def _pad(op: transform.PadOp, new: OpSequence) -> Answer:
    """Pads with the zero point where the model pads with zeros."""
    integers = quantised(op.data)
    if integers is None:
        return None
    if op.pad_mode.data != "constant" or not _may_add(op):
        return _moved(op, integers, new)
    zero = constant_array(integers.zero_point)
    if zero is None or op.pad_value.value.data != 0:
        return "it pads with a value that is not known to be the zero point"
    properties = {**op.properties, "pad_value": float(zero.reshape(-1)[0])}
    return _moved(op, integers, new, properties)


def _resize(op: image.ResizeOp, new: OpSequence) -> Answer:
    integers = quantised(op.data)
    if integers is None:
        return None
    if op.method.data != "nearest":
        return f"it interpolates by method '{op.method.data}', which computes values in between"
    if op.coordinate_transformation_mode.data == "tf_crop_and_resize":
        return "it may take values from outside of its data"
    return _moved(op, integers, new)


def _concatenate(op: transform.ConcatenateOp, new: OpSequence) -> Answer:
    """Concatenates integers with equal parameters.

    `integer_results` concatenates integers with different parameters, if the result is quantised.
    """
    parts = [quantised(value) for value in op.data]
    known = [part for part in parts if part is not None]
    first = known[0] if known else None
    if first is None or len(known) < len(parts):
        return None
    if not all(_same_parameters(part, first) for part in known):
        return None
    joined = new.add(transform.ConcatenateOp, [part.data for part in known], axis=op.axis)
    return Quantised(joined, first.scale, first.zero_point)


def _same_parameters(one: Quantised, two: Quantised) -> bool:
    return (
        one.is_whole
        and two.is_whole
        and one.dtype == two.dtype
        and same_value(one.scale, two.scale)
        and same_value(one.zero_point, two.zero_point)
    )


def _split(op: transform.SplitOp, new: OpSequence) -> Answer:
    integers = quantised(op.data)
    if integers is None:
        return None
    if not integers.is_whole:
        return "its operand has parameters along an axis, accepted is one for the whole tensor"
    values = new.add_all(
        transform.SplitOp, integers.data, sections=op.sections, axis=op.positive_axis
    )
    return [Quantised(value, integers.scale, integers.zero_point) for value in values]


RULES: dict[type[RelayOp], Rule] = {
    **dict.fromkeys(
        (
            index.GatherNdOp,
            index.TakeOp,
            transform.BroadcastToOp,
            transform.ExpandDimsOp,
            transform.ReshapeOp,
            transform.SqueezeOp,
            transform.StridedSliceOp,
            *pool.GLOBAL_MAX_POOL.values(),
            *pool.MAX_POOL.values(),
        ),
        _move,
    ),
    image.ResizeOp: _resize,
    transform.ConcatenateOp: _concatenate,
    transform.PadOp: _pad,
    transform.SplitOp: _split,
    transform.TransposeOp: _transpose,
}
