"""Quantised convolutions and average pools; see `qnn` for scales and zero points."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import TensorType, f32, i32
from xdsl.ir import Attribute
from xdsl.irdl import operand_def

from byoc_mlir.dialects.relay.base import (
    RelayOp,
    Tensor,
    bool_prop,
    tensor_of,
    type_sizes,
)
from byoc_mlir.dialects.relay.pool import GlobalPoolOp, PoolOp
from byoc_mlir.dialects.relay.qnn import BYTES, check_element, check_scalar, check_vector
from byoc_mlir.dialects.relay.window import (
    CorrelationOp,
    TransposedCorrelationOp,
    ranked,
)
from byoc_mlir.dims import Size


class ZeroPointsOp(RelayOp, ABC):
    """Last operands of a quantised convolution."""

    data_zero_point = operand_def(TensorType)
    weight_zero_point = operand_def(TensorType)


class QuantizedConvOp(CorrelationOp, ZeroPointsOp, ABC):
    """Correlation of `data - data_zero_point` and `weight - weight_zero_point`, in `i32`.

    Padding represents zero. Exact modulo 2^32. The weight's zero point may be a vector with one
    number for each output channel.
    """

    def infer_types(self) -> Sequence[Attribute]:
        return _accumulators(self)


class QuantizedConvTransposeOp(TransposedCorrelationOp, ZeroPointsOp, ABC):
    """Gradient of a correlation of `data - data_zero_point` and `weight - weight_zero_point`.

    Exact modulo 2^32. The weight's zero point may be a vector with one number for each output
    channel, if there is one group.
    """

    def infer_types(self) -> Sequence[Attribute]:
        return _accumulators(self)


def _accumulators(op: QuantizedConvOp | QuantizedConvTransposeOp) -> Sequence[Attribute]:
    data = check_element(op, "data", op.data, BYTES)
    weight = check_element(op, "weight", op.weight, BYTES)
    shape = op.output_sizes()
    check_scalar(op, "data_zero_point", op.data_zero_point, data.element_type)
    grouped_gradient = isinstance(op, QuantizedConvTransposeOp) and op.groups.value.data != 1
    if grouped_gradient:
        check_scalar(op, "weight_zero_point", op.weight_zero_point, weight.element_type)
    else:
        check_vector(op, "weight_zero_point", op.weight_zero_point, weight.element_type, shape[1])
    return (tensor_of(i32, shape),)


class QuantizedPoolOp(RelayOp, ABC):
    """Mean of quantised elements, with a quantised result."""

    data = operand_def(TensorType)
    input_scale = operand_def(TensorType)
    input_zero_point = operand_def(TensorType)
    output_scale = operand_def(TensorType)
    output_zero_point = operand_def(TensorType)

    def checked_result(self, shape: Sequence[Size]) -> Tensor:
        """Returns the result type for a shape, after checking the parameters.

        Raises:
            VerifyException: a parameter has a wrong shape or type.
        """
        data = check_element(self, "data", self.data, BYTES)
        zero = check_element(self, "output_zero_point", self.output_zero_point, BYTES)
        check_scalar(self, "input_scale", self.input_scale, f32)
        check_scalar(self, "input_zero_point", self.input_zero_point, data.element_type)
        check_scalar(self, "output_scale", self.output_scale, f32)
        check_scalar(self, "output_zero_point", self.output_zero_point, zero.element_type)
        return tensor_of(zero.element_type, shape)


class QuantizedAvgPoolOp(QuantizedPoolOp, PoolOp, ABC):
    """Mean of each window, over the elements in the data, requantised.

    `round(sum(data - input_zero_point) / count * (input_scale / output_scale)) +
    output_zero_point`, clamped to the type's range. With `count_include_pad`, `count` includes the
    padding, which represents zero (but not elements beyond it, which `ceil_mode` can reach).
    """

    count_include_pad = bool_prop(False)

    def infer_types(self) -> Sequence[Attribute]:
        (pooled,) = super().infer_types()
        return (self.checked_result(type_sizes(cast(Tensor, pooled))),)


class QuantizedGlobalAvgPoolOp(QuantizedPoolOp, GlobalPoolOp, ABC):
    """Mean over all spatial dimensions, requantised as in the other average pools."""

    def infer_types(self) -> Sequence[Attribute]:
        (pooled,) = super().infer_types()
        return (self.checked_result(type_sizes(cast(Tensor, pooled))),)


CONV = ranked(QuantizedConvOp, "relay.qnn.conv{}d")
CONV_TRANSPOSE = ranked(QuantizedConvTransposeOp, "relay.qnn.conv{}d_transpose")
AVG_POOL = ranked(QuantizedAvgPoolOp, "relay.qnn.avg_pool{}d")
GLOBAL_AVG_POOL = ranked(QuantizedGlobalAvgPoolOp, "relay.qnn.global_avg_pool{}d")
Conv1DOp, Conv2DOp, Conv3DOp = CONV.values()
Conv1DTransposeOp, Conv2DTransposeOp, Conv3DTransposeOp = CONV_TRANSPOSE.values()
AvgPool1DOp, AvgPool2DOp, AvgPool3DOp = AVG_POOL.values()
GlobalAvgPool1DOp, GlobalAvgPool2DOp, GlobalAvgPool3DOp = GLOBAL_AVG_POOL.values()
