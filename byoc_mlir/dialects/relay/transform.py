"""Ops that move elements without computing: reshape, transpose, concatenate, slice, pad, ..."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    DYNAMIC,
    AlongAxisOp,
    DataOp,
    OneResultOp,
    Tensor,
    float_prop,
    ints,
    ints_prop,
    normalize_axis,
    size_list,
    sizes_prop,
    str_prop,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.elementwise import broadcast_shapes
from byoc_mlir.dialects.relay.shape import agree, agreeing, at_most, same
from byoc_mlir.dims import Size, ceildiv, floordiv, smallest


def _like(value_type: Tensor, shape: Sequence[Size]) -> Tensor:
    return tensor_of(value_type.element_type, shape)


@irdl_op_definition
class ReshapeOp(DataOp):
    """`data -> output` of shape `newshape`, elements in row-major order; one -1 is inferred."""

    name = "relay.reshape"
    newshape = sizes_prop()

    def infer_types(self) -> Sequence[Attribute]:
        type_, new = tensor_type(self.data), list(size_list(self.newshape))
        if DYNAMIC in type_sizes(type_):
            return (_like(type_, [DYNAMIC if size == -1 else size for size in new]),)
        total, known = math.prod(type_sizes(type_)), math.prod(s for s in new if s != -1)
        if new.count(-1) == 1 and known != 0:
            new[new.index(-1)] = floordiv(total, known)
        if -1 in new or not same(math.prod(new), total):
            raise VerifyException(
                f"{self.name}: newshape {list(size_list(self.newshape))} does not hold the"
                f" {total} elements of {type_}"
            )
        return (_like(type_, new),)


@irdl_op_definition
class TransposeOp(DataOp):
    """`data -> output` whose dimension `i` is dimension `axes[i]` of `data`."""

    name = "relay.transpose"
    axes = ints_prop()

    def infer_types(self) -> Sequence[Attribute]:
        type_, axes = tensor_type(self.data), ints(self.axes)
        shape = type_sizes(type_)
        if sorted(axes) != list(range(len(shape))):
            raise VerifyException(
                f"{self.name}: axes {list(axes)} is not a permutation of 0..{len(shape) - 1}"
            )
        return (_like(type_, [shape[axis] for axis in axes]),)


@irdl_op_definition
class SqueezeOp(DataOp):
    """`data -> output` without the dimensions `axis`, which are 1."""

    name = "relay.squeeze"
    axis = ints_prop()

    def infer_types(self) -> Sequence[Attribute]:
        type_ = tensor_type(self.data)
        shape = type_sizes(type_)
        axes = {normalize_axis(axis, len(shape), f"{self.name}: axis") for axis in ints(self.axis)}
        for axis in axes:
            if not agree(shape[axis], 1):
                raise VerifyException(f"{self.name}: dimension {axis} of {type_} is not 1")
        return (_like(type_, [size for axis, size in enumerate(shape) if axis not in axes]),)


@irdl_op_definition
class ExpandDimsOp(DataOp):
    """`data -> output` with dimensions of 1 at the positions `axis` of the output."""

    name = "relay.expand_dims"
    axis = ints_prop()

    def infer_types(self) -> Sequence[Attribute]:
        type_ = tensor_type(self.data)
        rank = len(type_sizes(type_)) + len(ints(self.axis))
        axes = {normalize_axis(axis, rank, f"{self.name}: axis") for axis in ints(self.axis)}
        if len(axes) != len(ints(self.axis)):
            raise VerifyException(f"{self.name}: axis {list(ints(self.axis))} repeats a dimension")
        old = iter(type_sizes(type_))
        return (_like(type_, [1 if axis in axes else next(old) for axis in range(rank)]),)


@irdl_op_definition
class BroadcastToOp(DataOp):
    """`data` repeated to `shape` by numpy broadcasting."""

    name = "relay.broadcast_to"
    shape = sizes_prop()

    def infer_types(self) -> Sequence[Attribute]:
        type_, shape = tensor_type(self.data), size_list(self.shape)
        if not agreeing(broadcast_shapes(type_sizes(type_), shape), shape):
            raise VerifyException(f"{self.name}: {type_} does not broadcast to {list(shape)}")
        return (_like(type_, shape),)


@irdl_op_definition
class ConcatenateOp(AlongAxisOp, OneResultOp):
    """One or more tensors joined along `axis`."""

    name = "relay.concatenate"
    data = var_operand_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        if not self.data:
            raise VerifyException(f"{self.name}: expected at least one operand")
        types = [tensor_type(value) for value in self.data]
        axis, shape = self.positive_axis, [*type_sizes(types[0])]
        for type_ in types[1:]:
            others = list(type_sizes(type_))
            if type_.element_type != types[0].element_type or len(others) != len(shape):
                raise VerifyException(f"{self.name}: cannot join {types[0]} and {type_}")
            for dimension, (one, two) in enumerate(zip(shape, others, strict=True)):
                if dimension != axis and not agree(one, two):
                    raise VerifyException(
                        f"{self.name}: {types[0]} and {type_} differ outside of axis {axis}"
                    )
        joined = [type_sizes(type_)[axis] for type_ in types]
        shape[axis] = DYNAMIC if DYNAMIC in joined else sum(joined)
        return (_like(types[0], shape),)


@irdl_op_definition
class SplitOp(AlongAxisOp):
    """`data` cut along `axis` into one result for each of the sizes in `sections`."""

    name = "relay.split"
    data = operand_def(TensorType)
    sections = sizes_prop()
    outputs = var_result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        type_, axis, sections = tensor_type(self.data), self.positive_axis, size_list(self.sections)
        shape = list(type_sizes(type_))
        if not (all(at_most(0, size) for size in sections) and agree(sum(sections), shape[axis])):
            raise VerifyException(
                f"{self.name}: sections {list(sections)} do not add up to dimension {axis}"
                f" of {type_}"
            )
        return [
            _like(type_, [size if i == axis else old for i, old in enumerate(shape)])
            for size in sections
        ]


@irdl_op_definition
class StridedSliceOp(DataOp):
    """`data[begin:end:strides]` on every axis.

    `begin` and `end` are already clamped to the shape: for a positive stride
    `0 <= begin <= end <= size`; for a negative one `end` may be -1, before the first element.
    """

    name = "relay.strided_slice"
    begin = sizes_prop()
    end = sizes_prop()
    strides = ints_prop()

    def infer_types(self) -> Sequence[Attribute]:
        type_ = tensor_type(self.data)
        begin, end, strides = size_list(self.begin), size_list(self.end), ints(self.strides)
        shape = type_sizes(type_)
        if not len(begin) == len(end) == len(strides) == len(shape):
            raise VerifyException(
                f"{self.name}: begin, end and strides must have one entry for each of the"
                f" {len(shape)} dimensions, found {len(begin)}, {len(end)} and {len(strides)}"
            )
        for axis, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
            if shape[axis] != DYNAMIC and not _is_within(b, e, s, shape[axis]):
                raise VerifyException(
                    f"{self.name}: slice {b}:{e}:{s} leaves dimension {axis} of {type_}"
                )
        taken = [ceildiv(e - b, s) for b, e, s in zip(begin, end, strides, strict=True)]
        return (_like(type_, taken),)


def _is_within(begin: Size, end: Size, stride: int, size: Size) -> bool:
    """True if a slice is clamped to the size of its axis."""
    if (begin, end, stride) == (0, size, 1):
        return True
    if stride > 0:
        return at_most(0, begin) and at_most(begin, end) and at_most(end, size)
    return stride < 0 and at_most(-1, end) and at_most(end, begin) and at_most(begin, size - 1)


@irdl_op_definition
class PadOp(DataOp):
    """`data` with `pad_width` = `[before_0, after_0, before_1, after_1, ...]` elements added.

    `pad_mode`: `constant` (with `pad_value`), `edge`, `reflect` (without the border element) or
    `wrap`. Negative widths crop `data` first; then positive widths pad it.
    """

    name = "relay.nn.pad"
    pad_width = sizes_prop()
    pad_value = float_prop(0.0)
    pad_mode = str_prop("constant", ("constant", "edge", "reflect", "wrap"))

    def infer_types(self) -> Sequence[Attribute]:
        type_, widths = tensor_type(self.data), size_list(self.pad_width)
        shape = type_sizes(type_)
        if len(widths) != 2 * len(shape):
            raise VerifyException(
                f"{self.name}: pad_width must have {2 * len(shape)} entries, found {len(widths)}"
            )
        new = [
            size if size == DYNAMIC else size + widths[2 * axis] + widths[2 * axis + 1]
            for axis, size in enumerate(shape)
        ]
        kept = [
            size if size == DYNAMIC else size + smallest(0, low) + smallest(0, high)
            for size, low, high in zip(shape, widths[::2], widths[1::2], strict=True)
        ]
        if not all(size == DYNAMIC or at_most(0, size) for size in kept):
            raise VerifyException(f"{self.name}: pad_width {list(widths)} crops more than {type_}")
        if self.pad_mode.data != "constant" and 0 not in new:
            self._check_repeated(kept, new)
        return (_like(type_, new),)

    def _check_repeated(self, kept: Sequence[Size], new: Sequence[Size]) -> None:
        """Refuses padding that repeats elements of an empty axis."""
        for axis, (size, total) in enumerate(zip(kept, new, strict=True)):
            if size not in (total, DYNAMIC) and not at_most(1, size):
                raise VerifyException(
                    f"{self.name}: pad_mode {self.pad_mode.data} repeats elements, but of axis"
                    f" {axis} of {self.data.type} pad_width {list(size_list(self.pad_width))}"
                    " leaves none; use constant"
                )
