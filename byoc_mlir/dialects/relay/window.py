"""Ops that slide a window over spatial dimensions: bases, and convolutions, 1-D to 3-D.

`data` is `[N, C, spatial...]`, `padding` lists all begins, then all ends, as ONNX `pads` does.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import ClassVar, TypeVar, overload

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
from xdsl.irdl import operand_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.operations import define_op
from byoc_mlir.dialects.relay.base import (
    DYNAMIC,
    DataOp,
    RelayOp,
    Tensor,
    int_prop,
    ints,
    ints_prop,
    out_dtype_prop,
    product_element,
    str_prop,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.shape import agree, at_most, same
from byoc_mlir.dims import Size, ceildiv, largest, smallest


class SpatialOp(DataOp, ABC):
    """Op for a fixed number of spatial dimensions of `data [N, C, spatial...]`."""

    SPATIAL_RANK: ClassVar[int]

    LAYOUTS: ClassVar[Mapping[str, str]] = {}
    """Layout properties, which TVM has, with the letters before the spatial dimensions.

    There is only one layout, so that each property has one value.
    """

    def checked_data(self) -> Tensor:
        """Returns the type of `data`.

        Raises:
            VerifyException: `data` has another number of dimensions.
        """
        data = tensor_type(self.data)
        if len(type_sizes(data)) != self.SPATIAL_RANK + 2:
            raise VerifyException(
                f"{self.name}: data must have rank {self.SPATIAL_RANK + 2}, found {data}"
            )
        return data


S = TypeVar("S", bound=SpatialOp)


def ranked(base: type[S], name: str) -> Mapping[int, type[S]]:
    """Returns the ops of a family by their number of spatial dimensions, 1 to 3.

    Args:
        base: base class of the ops.
        name: name of the ops, with `{}` for the number of dimensions.
    """
    return {rank: _of_rank(base, name.format(rank), rank) for rank in (1, 2, 3)}


def _of_rank(base: type[S], name: str, rank: int) -> type[S]:
    layouts = {key: f"{before}{'DHW'[-rank:]}" for key, before in base.LAYOUTS.items()}
    fields: dict[str, object] = {
        "__annotations__": {"SPATIAL_RANK": ClassVar[int]},
        "SPATIAL_RANK": rank,
        **{key: str_prop(layout, (layout,)) for key, layout in layouts.items()},
    }
    return define_op(base, name, fields=fields)


def checked_ints(op: RelayOp, what: str, length: int, least: int) -> tuple[int, ...]:
    """Returns the array property `what` of an op.

    Raises:
        VerifyException: it has another length, or an integer below `least`.
    """
    values = ints(getattr(op, what))
    if len(values) != length or any(value < least for value in values):
        raise VerifyException(
            f"{op.name}: {what} must be {length} integers of at least {least}, found {list(values)}"
        )
    return values


class WindowOp(SpatialOp, ABC):
    """Base of convolutions and pools, with `strides`, `padding` and `dilation`."""

    strides = ints_prop()
    padding = ints_prop()
    dilation = ints_prop()

    def checked_window(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Returns `strides`, `padding` and `dilation`, after checking lengths and signs."""
        n = self.SPATIAL_RANK
        strides = checked_ints(self, "strides", n, least=1)
        padding = checked_ints(self, "padding", 2 * n, least=0)
        return strides, padding, checked_ints(self, "dilation", n, least=1)

    def output_size(self, size: Size, kernel: Size, axis: int, *, ceil: bool = False) -> Size:
        """Returns the number of windows along spatial axis `axis` of `size` elements."""
        if size == DYNAMIC:
            return DYNAMIC
        strides, padding, dilation = self.checked_window()
        before, after = padding[axis], padding[axis + self.SPATIAL_RANK]
        extent = (kernel - 1) * dilation[axis] + 1
        count = window_count(size, before, after, extent, strides[axis], ceil=ceil)
        if not at_most(1, count):
            raise VerifyException(
                f"{self.name}: a window of {kernel} (dilation {dilation[axis]}) does not fit the"
                f" {size} elements of spatial axis {axis} with padding {before} and {after}"
            )
        return count


@overload
def window_count(
    size: int, before: int, after: int, extent: int, stride: int, *, ceil: bool = ...
) -> int: ...


@overload
def window_count(
    size: Size, before: int, after: int, extent: Size, stride: int, *, ceil: bool = ...
) -> Size: ...


def window_count(
    size: Size, before: int, after: int, extent: Size, stride: int, *, ceil: bool = False
) -> Size:
    """Returns the number of windows of `extent` elements along a padded axis; 0 or less for none.

    With `ceil`, the last one may reach beyond the padding, unless it starts in the end padding.
    """
    span = size + before + after - extent
    if not ceil:
        return span // stride + 1
    count = ceildiv(span, stride) + 1
    starts_before_end_padding = ceildiv(size + before, stride)
    return largest(count - 1, smallest(count, starts_before_end_padding))


class CorrelationOp(WindowOp, ABC):
    """`data [N, C, ...], weight [O, C / groups, ...] -> output [N, O, ...]`."""

    data = operand_def(TensorType)  # again: a subclass's operands come before its base's
    weight = operand_def(TensorType)
    groups = int_prop(1)

    LAYOUTS: ClassVar[Mapping[str, str]] = {"data_layout": "NC", "kernel_layout": "OI"}

    def output_sizes(self) -> list[Size]:
        """Returns the sizes of the result, after checking data, weight and groups."""
        data, weight = self.checked_data(), tensor_type(self.weight)
        shape, kernel, groups = type_sizes(data), type_sizes(weight), self.groups.value.data
        if len(kernel) != len(shape):
            raise VerifyException(f"{self.name}: weight {weight} does not fit data {data}")
        divides = groups > 0 and same(kernel[0] % groups, 0)
        if not divides or not agree(shape[1], kernel[1] * groups):
            raise VerifyException(
                f"{self.name}: {shape[1]} channels in {groups} groups do not fit weight {weight}"
            )
        spatial = [
            self.output_size(size, kernel[axis + 2], axis) for axis, size in enumerate(shape[2:])
        ]
        return [shape[0], kernel[0], *spatial]


class TransposedCorrelationOp(WindowOp, ABC):
    """`data [N, C, ...], weight [C, O / groups, ...] -> output [N, O, ...]`.

    The gradient of a convolution; `output_padding` adds to the end of each spatial dimension.
    """

    data = operand_def(TensorType)  # again: a subclass's operands come before its base's
    weight = operand_def(TensorType)
    output_padding = ints_prop()
    groups = int_prop(1)

    LAYOUTS: ClassVar[Mapping[str, str]] = {"data_layout": "NC", "kernel_layout": "IO"}

    def output_sizes(self) -> list[Size]:
        """Returns the sizes of the result, after checking data, weight and groups."""
        data, weight = self.checked_data(), tensor_type(self.weight)
        shape, kernel, groups = type_sizes(data), type_sizes(weight), self.groups.value.data
        strides, padding, dilation = self.checked_window()
        extra = checked_ints(self, "output_padding", self.SPATIAL_RANK, least=0)
        if len(kernel) != len(shape):
            raise VerifyException(f"{self.name}: weight {weight} does not fit data {data}")
        divides = groups > 0 and same(kernel[0] % groups, 0)
        if not divides or not agree(shape[1], kernel[0]):
            raise VerifyException(
                f"{self.name}: {shape[1]} channels in {groups} groups do not fit weight {weight}"
            )
        spatial: list[Size] = []
        for axis, size in enumerate(shape[2:]):
            full = (size - 1) * strides[axis] + (kernel[axis + 2] - 1) * dilation[axis] + 1
            cut = padding[axis] + padding[axis + self.SPATIAL_RANK]
            spatial.append(DYNAMIC if size == DYNAMIC else full - cut + extra[axis])
        if not all(size == DYNAMIC or at_most(1, size) for size in spatial):
            raise VerifyException(
                f"{self.name}: padding {list(padding)} leaves nothing of the output"
            )
        return [shape[0], kernel[1] * groups, *spatial]


def _result_of_one_type(op: ConvOp | ConvTransposeOp) -> Sequence[Attribute]:
    """Returns the result type of a convolution whose operands have one element type."""
    data, weight = tensor_type(op.data), tensor_type(op.weight)
    if data.element_type != weight.element_type:
        raise VerifyException(f"{op.name}: weight {weight} does not fit data {data}")
    element = product_element(op, data.element_type, op.out_dtype)
    return (tensor_of(element, op.output_sizes()),)


class ConvOp(CorrelationOp, ABC):
    """Correlation; data and weight are of one type, and so is the output without `out_dtype`."""

    out_dtype = out_dtype_prop()

    def infer_types(self) -> Sequence[Attribute]:
        return _result_of_one_type(self)


class ConvTransposeOp(TransposedCorrelationOp, ABC):
    """Gradient of a correlation.

    Data and weight are of one type, and so is the output without `out_dtype`.
    """

    out_dtype = out_dtype_prop()

    def infer_types(self) -> Sequence[Attribute]:
        return _result_of_one_type(self)


CONV = ranked(ConvOp, "relay.nn.conv{}d")
CONV_TRANSPOSE = ranked(ConvTransposeOp, "relay.nn.conv{}d_transpose")
Conv1DOp, Conv2DOp, Conv3DOp = CONV.values()
Conv1DTransposeOp, Conv2DTransposeOp, Conv3DTransposeOp = CONV_TRANSPOSE.values()
