"""Quantised tensors: an element represents the value `(element - zero point) * scale`.

Scales are `f32`. Scales and zero points are operands: one for the whole tensor (rank 0), a vector
with one for each index along an axis, or, for `quantize` and `dequantize`, one for each block of an
axis. A zero point for the whole tensor goes with scales of any form.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import TensorType, f32, i8, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    DYNAMIC,
    AlongAxisOp,
    OneResultOp,
    RelayOp,
    Tensor,
    bool_prop,
    int_prop,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.element_types import NARROW_INTEGERS, ui8
from byoc_mlir.dialects.relay.elementwise import broadcast_shapes
from byoc_mlir.dialects.relay.shape import agree
from byoc_mlir.dims import Size, ceildiv

BYTES = (i8, ui8)
"""Element types of operands of int8 GEMMs, convolutions, sums and pools."""


def check_element(op: RelayOp, what: str, value: SSAValue, accepted: Sequence[Attribute]) -> Tensor:
    """Returns the type of `value`, whose elements must be of an accepted type.

    Raises:
        VerifyException: the element type is not accepted.
    """
    type_ = tensor_type(value)
    if type_.element_type not in accepted:
        names = ", ".join(str(each) for each in accepted)
        raise VerifyException(f"{op.name}: {what} must be of {names}, found {type_}")
    return type_


def check_scalar(op: RelayOp, what: str, value: SSAValue, element: Attribute) -> None:
    """Refuses a parameter that is not a scalar of a type.

    Raises:
        VerifyException: the parameter has another rank or type.
    """
    if value.type != tensor_of(element, ()):
        raise VerifyException(f"{op.name}: {what} must be tensor<{element}>, found {value.type}")


def check_vector(op: RelayOp, what: str, value: SSAValue, element: Attribute, size: Size) -> None:
    """Refuses a parameter that is neither a scalar of a type nor a vector of `size`.

    Raises:
        VerifyException: the parameter has another shape or type.
    """
    type_ = tensor_type(value)
    shape = type_sizes(type_)
    fits = not shape or (len(shape) == 1 and agree(shape[0], size))
    if not fits or type_.element_type != element:
        raise VerifyException(
            f"{op.name}: {what} must be tensor<{element}> or tensor<{size}x{element}>,"
            f" found {type_}"
        )


class AffineOp(AlongAxisOp, OneResultOp, ABC):
    """Conversion between `f32` and integers, with parameters along `axis`.

    Parameters are one number or a vector along `axis`. If `block_size` is not 0, they have the
    data's rank, and one number for each `block_size` elements along `axis`; the last block may be
    shorter.
    """

    data = operand_def(TensorType)
    scale = operand_def(TensorType)
    zero_point = operand_def(TensorType)
    axis = int_prop(1)
    block_size = int_prop(0)

    def check_parameters(self, zero_element: Attribute) -> None:
        """Checks the shapes and types of scale and zero point.

        Raises:
            VerifyException: scale or zero point do not fit the data.
        """
        data, block = type_sizes(tensor_type(self.data)), self.block_size.value.data
        if block < 0:
            raise VerifyException(f"{self.name}: block_size is {block}, accepted are 0 and more")
        for what, value, element in (
            ("scale", self.scale, f32),
            ("zero_point", self.zero_point, zero_element),
        ):
            shape = type_sizes(tensor_type(value))
            size = data[self.positive_axis] if shape else 1
            if not block or not shape:
                check_vector(self, what, value, element, size)
                continue
            blocks = DYNAMIC if size == DYNAMIC else ceildiv(size, block)
            expected = [blocks if i == self.positive_axis else n for i, n in enumerate(data)]
            fits = len(shape) == len(expected) and all(
                agree(n, m) for n, m in zip(shape, expected, strict=True)
            )
            if not fits or tensor_type(value).element_type != element:
                raise VerifyException(
                    f"{self.name}: {what} must be tensor<{element}> or"
                    f" {tensor_of(element, expected)}, found {value.type}"
                )


@irdl_op_definition
class QuantizeOp(AffineOp):
    """`round(data / scale) + zero_point`, clamped to the range of the zero point's type.

    Ties are rounded to even; everything is computed in `f32`.
    """

    name = "relay.qnn.quantize"

    def infer_types(self) -> Sequence[Attribute]:
        data = check_element(self, "data", self.data, [f32])
        zero = check_element(self, "zero_point", self.zero_point, NARROW_INTEGERS)
        self.check_parameters(zero.element_type)
        return (tensor_of(zero.element_type, type_sizes(data)),)


@irdl_op_definition
class DequantizeOp(AffineOp):
    """`(data - zero_point) * scale`; the difference is an `i32`, converted to `f32`.

    It is not folded, so that patterns find integer weights.
    """

    name = "relay.qnn.dequantize"
    IS_FOLDED: ClassVar = False

    def infer_types(self) -> Sequence[Attribute]:
        data = check_element(self, "data", self.data, [*NARROW_INTEGERS, i32])
        self.check_parameters(data.element_type)
        return (tensor_of(f32, type_sizes(data)),)


@irdl_op_definition
class RequantizeOp(AlongAxisOp, OneResultOp):
    """Conversion of integers to other quantisation parameters, without an intermediate tensor.

    `round((data - input_zero_point) * (input_scale / output_scale)) + output_zero_point`, clamped
    to the range of the output zero point's type. The difference is an `i32`, the rest is computed
    in `f32`; ties are rounded to even. `input_scale` may be a vector along `axis`.
    """

    name = "relay.qnn.requantize"
    data = operand_def(TensorType)
    input_scale = operand_def(TensorType)
    input_zero_point = operand_def(TensorType)
    output_scale = operand_def(TensorType)
    output_zero_point = operand_def(TensorType)
    axis = int_prop(1)

    def infer_types(self) -> Sequence[Attribute]:
        data = check_element(self, "data", self.data, [*BYTES, i32])
        zero = check_element(self, "output_zero_point", self.output_zero_point, NARROW_INTEGERS)
        is_vector = bool(type_sizes(tensor_type(self.input_scale)))
        size = type_sizes(data)[self.positive_axis] if is_vector else 1
        check_vector(self, "input_scale", self.input_scale, f32, size)
        check_scalar(self, "input_zero_point", self.input_zero_point, data.element_type)
        check_scalar(self, "output_scale", self.output_scale, f32)
        check_scalar(self, "output_zero_point", self.output_zero_point, zero.element_type)
        return (tensor_of(zero.element_type, type_sizes(data)),)


@irdl_op_definition
class DenseOp(OneResultOp):
    """`data [..., in], weight [units, in] -> output [..., units]` of `i32`.

    `(data - data_zero_point) · (weight - weight_zero_point)ᵀ`, exact modulo 2^32. The weight's zero
    point may be a vector with one number for each unit.
    """

    name = "relay.qnn.dense"
    data = operand_def(TensorType)
    weight = operand_def(TensorType)
    data_zero_point = operand_def(TensorType)
    weight_zero_point = operand_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        data = check_element(self, "data", self.data, BYTES)
        weight = check_element(self, "weight", self.weight, BYTES)
        shape, kernel = type_sizes(data), type_sizes(weight)
        if not shape or len(kernel) != 2 or not agree(shape[-1], kernel[1]):
            raise VerifyException(
                f"{self.name}: expected data [..., in] and weight [units, in],"
                f" found {data} and {weight}"
            )
        check_scalar(self, "data_zero_point", self.data_zero_point, data.element_type)
        check_vector(
            self, "weight_zero_point", self.weight_zero_point, weight.element_type, kernel[0]
        )
        return (tensor_of(i32, [*shape[:-1], kernel[0]]),)


@irdl_op_definition
class MatmulOp(OneResultOp):
    """`a [..., m, k], b [..., k, n] -> output [..., m, n]` of `i32`; leading dimensions broadcast.

    `(a - a_zero_point) · (b - b_zero_point)`, exact modulo 2^32. `transpose_a` and `transpose_b`
    swap the last two dimensions of an operand first. A zero point is one number, or broadcasts to
    its operand (before it is transposed) and is constant along `k`.
    """

    name = "relay.qnn.matmul"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    a_zero_point = operand_def(TensorType)
    b_zero_point = operand_def(TensorType)
    transpose_a = bool_prop(False)
    transpose_b = bool_prop(False)

    def infer_types(self) -> Sequence[Attribute]:
        a, b = check_element(self, "a", self.a, BYTES), check_element(self, "b", self.b, BYTES)
        one, two = list(type_sizes(a)), list(type_sizes(b))
        if len(one) < 2 or len(two) < 2:
            raise VerifyException(
                f"{self.name}: expected two matrices (or stacks of them), found {a} and {b}"
            )
        inner_a = -2 if self.transpose_a.value.data else -1
        inner_b = -1 if self.transpose_b.value.data else -2
        self._check_zero_point("a_zero_point", self.a_zero_point, a, inner_a)
        self._check_zero_point("b_zero_point", self.b_zero_point, b, inner_b)
        if not agree(one[inner_a], two[inner_b]):
            raise VerifyException(
                f"{self.name}: inner dimensions {one[inner_a]} and {two[inner_b]} of {a} and {b}"
                " differ"
            )
        batch = broadcast_shapes(one[:-2], two[:-2])
        return (tensor_of(i32, [*batch, one[-3 - inner_a], two[-3 - inner_b]]),)

    def _check_zero_point(self, what: str, value: SSAValue, data: Tensor, inner: int) -> None:
        type_ = tensor_type(value)
        shape, whole = type_sizes(type_), type_sizes(data)
        fits = not shape or (
            len(shape) == len(whole)
            and shape[inner] == 1
            and all(n == 1 or agree(n, m) for n, m in zip(shape, whole, strict=True))
        )
        if not fits or type_.element_type != data.element_type:
            raise VerifyException(
                f"{self.name}: {what} must be tensor<{data.element_type}>, or broadcast to {data}"
                f" and have size 1 along the inner dimension, found {type_}"
            )


class BinaryOp(OneResultOp, ABC):
    """Op on two quantised tensors, which broadcast; the result is quantised, too."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    lhs_scale = operand_def(TensorType)
    lhs_zero_point = operand_def(TensorType)
    rhs_scale = operand_def(TensorType)
    rhs_zero_point = operand_def(TensorType)
    output_scale = operand_def(TensorType)
    output_zero_point = operand_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        lhs = check_element(self, "lhs", self.lhs, BYTES)
        rhs = check_element(self, "rhs", self.rhs, BYTES)
        zero = check_element(self, "output_zero_point", self.output_zero_point, BYTES)
        for what, scale, zero_point, element in (
            ("lhs", self.lhs_scale, self.lhs_zero_point, lhs.element_type),
            ("rhs", self.rhs_scale, self.rhs_zero_point, rhs.element_type),
            ("output", self.output_scale, self.output_zero_point, zero.element_type),
        ):
            check_scalar(self, f"{what}_scale", scale, f32)
            check_scalar(self, f"{what}_zero_point", zero_point, element)
        shape = broadcast_shapes(type_sizes(lhs), type_sizes(rhs))
        return (tensor_of(zero.element_type, shape),)


@irdl_op_definition
class AddOp(BinaryOp):
    """`lhs + rhs`: dequantised, added in `f32` and quantised."""

    name = "relay.qnn.add"


@irdl_op_definition
class MultiplyOp(BinaryOp):
    """`lhs * rhs`: dequantised, multiplied in `f32` and quantised."""

    name = "relay.qnn.multiply"


@irdl_op_definition
class LookupOp(OneResultOp):
    """`output[i] = table[data[i]]`: any function of one byte, as a table of its 256 results.

    The index is the byte as an unsigned number: 0 to 127, then -128 to -1.
    """

    name = "relay.qnn.lookup"
    data = operand_def(TensorType)
    table = operand_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        data = check_element(self, "data", self.data, BYTES)
        table = check_element(self, "table", self.table, BYTES)
        if type_sizes(table) != (256,):
            raise VerifyException(f"{self.name}: table must have 256 elements, found {table}")
        return (tensor_of(table.element_type, type_sizes(data)),)
