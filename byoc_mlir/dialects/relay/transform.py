"""Ops that move elements without computing: reshape, transpose, concatenate, slice, pad, ..."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    DYNAMIC,
    RelayOp,
    Tensor,
    float_prop,
    int_prop,
    ints,
    ints_prop,
    normalize_axis,
    shape_of,
    str_prop,
    tensor_type,
)
from byoc_mlir.dialects.relay.elementwise import broadcast_shapes


def _like(value_type: Tensor, shape: Sequence[int]) -> Tensor:
    return TensorType(value_type.element_type, shape)


@irdl_op_definition
class ReshapeOp(RelayOp):
    """`data -> output` of shape `newshape`, elements in row-major order; one -1 is inferred."""

    name = "relay.reshape"
    data = operand_def(TensorType)
    newshape = ints_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        type_, new = tensor_type(self.data), list(ints(self.newshape))
        if not type_.has_static_shape():
            return (_like(type_, new),)
        total, known = math.prod(type_.get_shape()), math.prod(s for s in new if s != -1)
        if new.count(-1) == 1 and known and total % known == 0:
            new[new.index(-1)] = total // known
        if -1 in new or math.prod(new) != total:
            raise VerifyException(
                f"{self.name}: newshape {list(ints(self.newshape))} does not hold the"
                f" {total} elements of {type_}"
            )
        return (_like(type_, new),)


@irdl_op_definition
class TransposeOp(RelayOp):
    """`data -> output` whose dimension `i` is dimension `axes[i]` of `data`."""

    name = "relay.transpose"
    data = operand_def(TensorType)
    axes = ints_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        type_, axes = tensor_type(self.data), ints(self.axes)
        shape = type_.get_shape()
        if sorted(axes) != list(range(len(shape))):
            raise VerifyException(
                f"{self.name}: axes {list(axes)} is not a permutation of 0..{len(shape) - 1}"
            )
        return (_like(type_, [shape[axis] for axis in axes]),)


@irdl_op_definition
class SqueezeOp(RelayOp):
    """`data -> output` without the dimensions `axis`, which are 1."""

    name = "relay.squeeze"
    data = operand_def(TensorType)
    axis = ints_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        type_ = tensor_type(self.data)
        shape = type_.get_shape()
        axes = {normalize_axis(axis, len(shape), f"{self.name}: axis") for axis in ints(self.axis)}
        for axis in axes:
            if shape[axis] not in (1, DYNAMIC):
                raise VerifyException(f"{self.name}: dimension {axis} of {type_} is not 1")
        return (_like(type_, [size for axis, size in enumerate(shape) if axis not in axes]),)


@irdl_op_definition
class ExpandDimsOp(RelayOp):
    """`data -> output` with dimensions of 1 at the positions `axis` of the output."""

    name = "relay.expand_dims"
    data = operand_def(TensorType)
    axis = ints_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        type_ = tensor_type(self.data)
        rank = len(type_.get_shape()) + len(ints(self.axis))
        axes = {normalize_axis(axis, rank, f"{self.name}: axis") for axis in ints(self.axis)}
        if len(axes) != len(ints(self.axis)):
            raise VerifyException(f"{self.name}: axis {list(ints(self.axis))} repeats a dimension")
        old = iter(type_.get_shape())
        return (_like(type_, [1 if axis in axes else next(old) for axis in range(rank)]),)


@irdl_op_definition
class BroadcastToOp(RelayOp):
    """`data` repeated to `shape` by numpy broadcasting."""

    name = "relay.broadcast_to"
    data = operand_def(TensorType)
    shape = ints_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        type_, shape = tensor_type(self.data), ints(self.shape)
        if broadcast_shapes(type_.get_shape(), shape) != shape:
            raise VerifyException(f"{self.name}: {type_} does not broadcast to {list(shape)}")
        return (_like(type_, shape),)


@irdl_op_definition
class ConcatenateOp(RelayOp):
    """One or more tensors joined along `axis`."""

    name = "relay.concatenate"
    data = var_operand_def(TensorType)
    axis = int_prop(0)
    output = result_def(TensorType)

    @property
    def positive_axis(self) -> int:
        """`axis`, counted from the front."""
        rank = len(shape_of(self.data[0]))
        return normalize_axis(self.axis.value.data, rank, f"{self.name}: axis")

    def infer_types(self) -> Sequence[Attribute]:
        if not self.data:
            raise VerifyException(f"{self.name}: expected at least one operand")
        types = [tensor_type(value) for value in self.data]
        axis, shape = self.positive_axis, list(types[0].get_shape())
        for type_ in types[1:]:
            others = list(type_.get_shape())
            if type_.element_type != types[0].element_type or len(others) != len(shape):
                raise VerifyException(f"{self.name}: cannot join {types[0]} and {type_}")
            for dimension, (one, two) in enumerate(zip(shape, others, strict=True)):
                if dimension != axis and one != two and DYNAMIC not in (one, two):
                    raise VerifyException(
                        f"{self.name}: {types[0]} and {type_} differ outside of axis {axis}"
                    )
        sizes = [type_.get_shape()[axis] for type_ in types]
        shape[axis] = DYNAMIC if DYNAMIC in sizes else sum(sizes)
        return (_like(types[0], shape),)


@irdl_op_definition
class SplitOp(RelayOp):
    """`data` cut along `axis` into one result for each of the sizes in `sections`."""

    name = "relay.split"
    data = operand_def(TensorType)
    sections = ints_prop()
    axis = int_prop(0)
    outputs = var_result_def(TensorType)

    @property
    def positive_axis(self) -> int:
        """`axis`, counted from the front."""
        rank = len(shape_of(self.data))
        return normalize_axis(self.axis.value.data, rank, f"{self.name}: axis")

    def infer_types(self) -> Sequence[Attribute]:
        type_, axis, sections = tensor_type(self.data), self.positive_axis, ints(self.sections)
        shape = list(type_.get_shape())
        if any(size < 0 for size in sections) or shape[axis] not in (sum(sections), DYNAMIC):
            raise VerifyException(
                f"{self.name}: sections {list(sections)} do not add up to dimension {axis}"
                f" of {type_}"
            )
        return [
            _like(type_, [size if i == axis else old for i, old in enumerate(shape)])
            for size in sections
        ]


@irdl_op_definition
class StridedSliceOp(RelayOp):
    """`data[begin:end:strides]` on every axis.

    `begin` and `end` are already clamped to the shape: for a positive stride
    `0 <= begin <= end <= size`; for a negative one `end` may be -1, before the first element.
    """

    name = "relay.strided_slice"
    data = operand_def(TensorType)
    begin = ints_prop()
    end = ints_prop()
    strides = ints_prop()
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        type_ = tensor_type(self.data)
        begin, end, strides = ints(self.begin), ints(self.end), ints(self.strides)
        shape = type_.get_shape()
        if not len(begin) == len(end) == len(strides) == len(shape):
            raise VerifyException(
                f"{self.name}: begin, end and strides must have one entry for each of the"
                f" {len(shape)} dimensions, found {len(begin)}, {len(end)} and {len(strides)}"
            )
        for axis, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
            forward = s > 0 and 0 <= b <= e <= shape[axis]
            backward = s < 0 and -1 <= e <= b < shape[axis]
            if shape[axis] != DYNAMIC and not (forward or backward):
                raise VerifyException(
                    f"{self.name}: slice {b}:{e}:{s} leaves dimension {axis} of {type_}"
                )
        sizes = [max(0, -(-(e - b) // s)) for b, e, s in zip(begin, end, strides, strict=True)]
        return (_like(type_, sizes),)


@irdl_op_definition
class PadOp(RelayOp):
    """`data` with `pad_width` = `[before_0, after_0, before_1, after_1, ...]` elements added.

    `pad_mode`: `constant` (with `pad_value`), `edge`, `reflect` (without the border element) or
    `wrap`. Negative widths crop, before the others add.
    """

    name = "relay.nn.pad"
    data = operand_def(TensorType)
    pad_width = ints_prop()
    pad_value = float_prop(0.0)
    pad_mode = str_prop("constant")
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        type_, widths = tensor_type(self.data), ints(self.pad_width)
        shape = type_.get_shape()
        if len(widths) != 2 * len(shape):
            raise VerifyException(
                f"{self.name}: pad_width must have {2 * len(shape)} entries, found {len(widths)}"
            )
        if self.pad_mode.data not in ("constant", "edge", "reflect", "wrap"):
            raise VerifyException(
                f"{self.name}: pad_mode is '{self.pad_mode.data}', accepted are constant, edge,"
                " reflect and wrap"
            )
        new = [
            size if size == DYNAMIC else size + widths[2 * axis] + widths[2 * axis + 1]
            for axis, size in enumerate(shape)
        ]
        kept = [
            size if size == DYNAMIC else size + min(0, low) + min(0, high)
            for size, low, high in zip(shape, widths[::2], widths[1::2], strict=True)
        ]
        if any(size < 0 for size in kept if size != DYNAMIC):
            raise VerifyException(f"{self.name}: pad_width {list(widths)} crops more than {type_}")
        if self.pad_mode.data != "constant" and 0 in kept and 0 not in new:
            raise VerifyException(
                f"{self.name}: pad_mode {self.pad_mode.data} repeats elements, but of axis"
                f" {kept.index(0)} of {type_} pad_width {list(widths)} leaves none; use constant"
            )
        return (_like(type_, new),)
