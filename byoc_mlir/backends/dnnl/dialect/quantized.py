"""Quantised convolutions, matmuls, sums and functions, of `i8` or `ui8`.

A byte `q` represents the value `(q - zero_point) * scale`. Scales are `f32`, zero points `i32`.

https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_attributes_quantization.html
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, TensorType, f32, i8, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.backends.dnnl.dialect.attributes import check_name
from byoc_mlir.backends.dnnl.dialect.base import DnnlOp, ExecutedOp, PostOpsOp
from byoc_mlir.backends.dnnl.dialect.window import WeightedWindowOp
from byoc_mlir.backends.dnnl.library.algorithms import INTEGER_CONVOLUTIONS
from byoc_mlir.dialects.relay.base import shape_of, str_prop, tensor_type
from byoc_mlir.dialects.relay.element_types import ui8

_BYTES = (i8, ui8)


@irdl_op_definition
class QuantizedConvolutionOp(WeightedWindowOp):
    """`source [N, C, ...], weights [O, C / groups, ...] -> [N, O, ...]` of 8-bit `element`.

    Computes `round(post_ops(sum((source - source_zero_point) * weights) * scales + bias) +
    zero_point)`, saturated to the range of `element`. Operands are the source, the weights (`i8`),
    the bias `[O]` and the scales `[O]`, both `f32`, in units of the result's scale, and two zero
    points `[1]`.

    `algorithm` is `direct` (oneDNN's), or a built-in one: `integer_gemm`, `integer_depthwise`,
    `f4x3`. `too_large` is a faster algorithm that was rejected, because its weights would take too
    much memory.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_convolution.html
    """

    name = "dnnl.quantized_convolution"
    element = prop_def(Attribute)
    algorithm = str_prop("direct")
    too_large = opt_prop_def(StringAttr)

    @property
    def bias(self) -> SSAValue:
        """Returns the bias, which is added to the scaled sums."""
        return self.arguments[2]

    @property
    def scales(self) -> SSAValue:
        """Returns the scales of the integer sums."""
        return self.arguments[3]

    @property
    def source_zero_point(self) -> SSAValue:
        """Returns the source's zero point."""
        return self.arguments[4]

    @property
    def zero_point(self) -> SSAValue:
        """Returns the result's zero point."""
        return self.arguments[5]

    def infer_types(self) -> Sequence[Attribute]:
        source, weights = self.check_primary(6, 6)[:2]
        shape = self.correlated_shape()
        check_name(f"{self.name}: algorithm", self.algorithm.data, INTEGER_CONVOLUTIONS)
        _check_bytes(self, tensor_type(source).element_type, self.element)
        _check_element(self, "weights", weights, i8)
        _check_vector(self, "scales", self.scales, f32, shape[1])
        for what, value in (
            ("source_zero_point", self.source_zero_point),
            ("zero_point", self.zero_point),
        ):
            _check_vector(self, what, value, i32, 1)
        return (TensorType(self.element, shape),)


def is_ours(op: object) -> bool:
    """True if a built-in kernel computes this quantised convolution."""
    return isinstance(op, QuantizedConvolutionOp) and op.algorithm.data != "direct"


@irdl_op_definition
class QuantizedMatmulOp(PostOpsOp):
    """`source [M, K], weights [N, K] -> [M, N]` of `element`, 8-bit or `f32`.

    Computes `sum((source - source_zero_point) * weights) * scales + bias`, then post-ops; an 8-bit
    result adds `zero_point`, rounds and saturates. Operands are the source, the weights (`i8`), the
    bias `[1, N]`, the scales `[N]` or `[1]`, and two zero points `[1]`; for an `f32` result, only
    the source's zero point.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_matmul.html
    """

    name = "dnnl.quantized_matmul"
    element = prop_def(Attribute)

    def infer_types(self) -> Sequence[Attribute]:
        count = 5 if self.element == f32 else 6
        source, weights, bias, scales, *zero_points = self.check_primary(count, count)
        shape, kernel = shape_of(source), shape_of(weights)
        if len(shape) != 2 or len(kernel) != 2 or shape[1] != kernel[1]:
            raise VerifyException(
                f"{self.name}: weights {weights.type} do not fit source {source.type}"
            )
        _check_bytes(self, tensor_type(source).element_type)
        if self.element != f32:
            _check_bytes(self, self.element)
        _check_element(self, "weights", weights, i8)
        if bias.type != TensorType(f32, [1, kernel[0]]):
            raise VerifyException(
                f"{self.name}: bias must be tensor<1x{kernel[0]}xf32>, found {bias.type}"
            )
        _check_vector(self, "scales", scales, f32, 1 if shape_of(scales) == (1,) else kernel[0])
        for zero_point in zero_points:
            _check_vector(self, "a zero point", zero_point, i32, 1)
        return (TensorType(self.element, [shape[0], kernel[0]]),)


@irdl_op_definition
class QuantizedAddOp(PostOpsOp):
    """`round(post_ops(a * a_scale + b * b_scale))`, saturated to the range of 8-bit `element`.

    Operands are two tensors of one shape and their scales `[1]`.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_binary.html
    """

    name = "dnnl.quantized_add"
    element = prop_def(Attribute)

    def infer_types(self) -> Sequence[Attribute]:
        a, b, *scales = self.check_primary(4, 4)
        if shape_of(a) != shape_of(b):
            raise VerifyException(f"{self.name}: {a.type} and {b.type} are not of one shape")
        _check_bytes(self, *(tensor_type(one).element_type for one in (a, b)), self.element)
        for scale in scales:
            _check_vector(self, "scale", scale, f32, 1)
        return (TensorType(self.element, shape_of(a)),)


@irdl_op_definition
class LookupOp(ExecutedOp):
    """`source [...], table [256] -> [...]`: the table's entry for each byte, by a built-in
    kernel.

    The index into the table is the byte as an unsigned number.
    """

    name = "dnnl.lookup"
    source = operand_def(TensorType)
    table = operand_def(TensorType)
    output = result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        element = tensor_type(self.table).element_type
        _check_bytes(self, tensor_type(self.source).element_type, element)
        _check_vector(self, "table", self.table, element, 256)
        return (TensorType(element, shape_of(self.source)),)


def _check_bytes(op: DnnlOp, *elements: Attribute) -> None:
    for element in elements:
        if element not in _BYTES:
            raise VerifyException(f"{op.name}: accepted are i8 and ui8, found {element}")


def _check_element(op: DnnlOp, what: str, value: SSAValue, element: Attribute) -> None:
    if tensor_type(value).element_type != element:
        raise VerifyException(f"{op.name}: {what} must be of {element}, found {value.type}")


def _check_vector(op: DnnlOp, what: str, value: SSAValue, element: Attribute, size: int) -> None:
    wanted = TensorType(element, [size])
    if value.type != wanted:
        raise VerifyException(f"{op.name}: {what} must be {wanted}, found {value.type}")
