"""Dense layers, activations and normalisations of neural networks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    AlongAxisOp,
    OneResultOp,
    RelayOp,
    Tensor,
    bool_prop,
    float_prop,
    int_prop,
    out_dtype_prop,
    product_element,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.elementwise import (
    BroadcastOp,
    FloatUnaryOp,
    UnaryOp,
    broadcast_shapes,
    check_float,
)
from byoc_mlir.dialects.relay.shape import agree


def check_channels(op: RelayOp, what: str, value: SSAValue, data: Tensor, axis: int) -> None:
    """Refuses a per-channel operand that is not a vector of `data`'s size along `axis`.

    Raises:
        VerifyException: the rank, size or element type is wrong.
    """
    type_, size = tensor_type(value), type_sizes(data)[axis]
    shape = type_sizes(type_)
    fits = len(shape) == 1 and agree(shape[0], size)
    if not fits or type_.element_type != data.element_type:
        raise VerifyException(
            f"{op.name}: {what} must be tensor<{size}x{data.element_type}>, found {type_}"
        )


@irdl_op_definition
class DenseOp(OneResultOp):
    """`data [..., in], weight [units, in] -> output [..., units]`: `data · weightᵀ`.

    The output is of the operands' type, or of `out_dtype`.
    """

    name = "relay.nn.dense"
    data = operand_def(TensorType)
    weight = operand_def(TensorType)
    out_dtype = out_dtype_prop()

    def infer_types(self) -> Sequence[Attribute]:
        data, weight = tensor_type(self.data), tensor_type(self.weight)
        shape, kernel = type_sizes(data), type_sizes(weight)
        if (
            not shape
            or len(kernel) != 2
            or data.element_type != weight.element_type
            or not agree(shape[-1], kernel[1])
        ):
            raise VerifyException(
                f"{self.name}: expected data [..., in] and weight [units, in] of one element"
                f" type, found {data} and {weight}"
            )
        element = product_element(self, data.element_type, self.out_dtype)
        return (tensor_of(element, [*shape[:-1], kernel[0]]),)


@irdl_op_definition
class MatmulOp(OneResultOp):
    """`a [..., m, k], b [..., k, n] -> output [..., m, n]`; leading dimensions broadcast.

    `transpose_a` and `transpose_b` swap the last two dimensions of an operand first. The output is
    of the operands' type, or of `out_dtype`.
    """

    name = "relay.nn.matmul"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    transpose_a = bool_prop(False)
    transpose_b = bool_prop(False)
    out_dtype = out_dtype_prop()

    def infer_types(self) -> Sequence[Attribute]:
        a, b = tensor_type(self.a), tensor_type(self.b)
        one, two = list(type_sizes(a)), list(type_sizes(b))
        if len(one) < 2 or len(two) < 2 or a.element_type != b.element_type:
            raise VerifyException(
                f"{self.name}: expected two matrices (or stacks of them) of one element type,"
                f" found {a} and {b}"
            )
        if self.transpose_a.value.data:
            one[-2:] = reversed(one[-2:])
        if self.transpose_b.value.data:
            two[-2:] = reversed(two[-2:])
        if not agree(one[-1], two[-2]):
            raise VerifyException(
                f"{self.name}: inner dimensions {one[-1]} and {two[-2]} of {a} and {b} differ"
            )
        batch = broadcast_shapes(one[:-2], two[:-2])
        element = product_element(self, a.element_type, self.out_dtype)
        return (tensor_of(element, [*batch, one[-2], two[-1]]),)


@irdl_op_definition
class BiasAddOp(AlongAxisOp, OneResultOp):
    """`data [...] + bias [C]`, where C is the size of `data` along `axis`."""

    name = "relay.nn.bias_add"
    data = operand_def(TensorType)
    bias = operand_def(TensorType)
    axis = int_prop(1)

    def infer_types(self) -> Sequence[Attribute]:
        check_channels(self, "bias", self.bias, tensor_type(self.data), self.positive_axis)
        return (self.data.type,)


@irdl_op_definition
class BatchNormOp(AlongAxisOp):
    """Normalisation with given statistics: `(data - moving_mean) / sqrt(moving_var + epsilon)`.

    The result is multiplied by `gamma`, plus `beta`; all four are `[C]` along `axis`. As in Relay
    there are three results: the output, and the moving mean and variance unchanged.
    """

    name = "relay.nn.batch_norm"
    data = operand_def(TensorType)
    gamma = operand_def(TensorType)
    beta = operand_def(TensorType)
    moving_mean = operand_def(TensorType)
    moving_var = operand_def(TensorType)
    axis = int_prop(1)
    epsilon = float_prop(1e-5)
    output = result_def(TensorType)
    out_mean = result_def(TensorType)
    out_var = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        data = tensor_type(self.data)
        for what in ("gamma", "beta", "moving_mean", "moving_var"):
            check_channels(self, what, getattr(self, what), data, self.positive_axis)
        return (self.data.type, self.moving_mean.type, self.moving_var.type)


@irdl_op_definition
class LayerNormOp(AlongAxisOp, OneResultOp):
    """`(data - mean) / sqrt(variance + epsilon) * gamma + beta` over the dimensions from `axis` on.

    `gamma` and `beta` have the shape of the normalised dimensions.
    """

    name = "relay.nn.layer_norm"
    data = operand_def(TensorType)
    gamma = operand_def(TensorType)
    beta = operand_def(TensorType)
    axis = int_prop(-1)
    epsilon = float_prop(1e-5)

    def infer_types(self) -> Sequence[Attribute]:
        check_float(self, self.data)
        data = tensor_type(self.data)
        expected = tensor_of(data.element_type, type_sizes(data)[self.positive_axis :])
        for what, value in (("gamma", self.gamma), ("beta", self.beta)):
            if value.type != expected:
                raise VerifyException(f"{self.name}: {what} must be {expected}, found {value.type}")
        return (data,)


_LARGEST_SIZE = 2**31 - 1
"""Largest window; channel counts are smaller, and byte offsets must stay within 64 bits."""


@irdl_op_definition
class LrnOp(FloatUnaryOp):
    """Local response normalisation over `size` neighbours along `axis`.

    `data / (bias + alpha / size * sum(data²)) ** beta`; the window reaches `(size - 1) // 2`
    back and `size // 2` ahead, as in ONNX LRN.
    """

    name = "relay.nn.lrn"
    size = int_prop(5)
    axis = int_prop(1)
    bias = float_prop(1.0)
    alpha = float_prop(0.0001)
    beta = float_prop(0.75)

    def infer_types(self) -> Sequence[Attribute]:
        if not 1 <= self.size.value.data <= _LARGEST_SIZE:
            raise VerifyException(
                f"{self.name}: size is {self.size.value.data}, accepted are 1 to {_LARGEST_SIZE}"
            )
        return super().infer_types()


@irdl_op_definition
class ReluOp(UnaryOp):
    """`max(data, 0)`; NaN stays NaN."""

    name = "relay.nn.relu"


@irdl_op_definition
class LeakyReluOp(UnaryOp):
    """`data` where it is not negative, else `alpha * data`."""

    name = "relay.nn.leaky_relu"
    alpha = float_prop(0.01)


@irdl_op_definition
class PreluOp(BroadcastOp):
    """`lhs` where it is not negative, else `rhs * lhs`; the slopes `rhs` broadcast to `lhs`."""

    name = "relay.nn.prelu"
