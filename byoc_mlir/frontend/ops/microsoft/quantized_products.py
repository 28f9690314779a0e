"""Quantised matmuls with fused epilogues, and an LSTM that quantises its state in each step."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.dialects.relay import elementwise, nn
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.heads import expect_rank, expect_shape
from byoc_mlir.frontend.ops.lstm import looped_lstm
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.ops.microsoft.attention import attention_of, cut, expect_plain
from byoc_mlir.frontend.ops.microsoft.quantized import parameters
from byoc_mlir.frontend.ops.quantize import (
    IntegerWeight,
    dequantized,
    dynamic_parameters,
    product,
    qlinear_conv,
    quantized,
    requantized,
    scale_of,
    zero_point_of,
)
from byoc_mlir.frontend.ops.recurrent import Operands
from byoc_mlir.frontend.ops.recurrent_layer import CellAttributes
from byoc_mlir.frontend.ops.window import ConvAttributes
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value


@register_op(DOMAIN, "DynamicQuantizeLSTM", attributes=CellAttributes)
def dynamic_quantize_lstm(
    context: NodeContext,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    sequence_lens: Value | None,
    initial_h: Value | None,
    initial_c: Value | None,
    p: Value | None,
    w_scale: Value,
    w_zero_point: Value,
    r_scale: Value,
    r_zero_point: Value,
    *,
    attributes: CellAttributes,
    input_forget: int = 0,
) -> Sequence[Value]:
    """Imports DynamicQuantizeLSTM; `w` and `r` are `[directions, in, 4 * hidden]`."""
    operands = Operands(
        x,
        _weights(context, w, w_scale, w_zero_point, "W"),
        _weights(context, r, r_scale, r_zero_point, "R"),
        b,
        sequence_lens,
        (initial_h, initial_c),
    )
    return looped_lstm(context, operands, p, attributes, input_forget=bool(input_forget))


def _weights(
    context: NodeContext, matrices: Value, scale: Value, zero_point: Value, what: str
) -> IntegerWeight:
    """Returns the transposed matrices `[directions, in, units]`, with a scale per matrix or per
    unit.
    """
    expect_rank(matrices, what, 3)
    directions, _, units = matrices.shape
    accepted = ((directions,), (directions, units))
    expect_shape(scale, f"{what}_scale", *accepted)
    expect_shape(zero_point, f"{what}_zero_point", *accepted)
    shift = zero_point_of(context, zero_point, matrices.dtype, f"{what}_zero_point")
    return IntegerWeight(
        arith.transpose(context, matrices, [0, 2, 1]),
        arith.reshape(context, scale_of(context, scale, f"{what}_scale"), scale.shape),
        arith.reshape(context, shift, zero_point.shape),
    )


@register_op(DOMAIN, "QGemm")
def qgemm(
    context: NodeContext,
    a: Value,
    a_scale: Value,
    a_zero_point: Value,
    b: Value,
    b_scale: Value,
    b_zero_point: Value,
    c: Value | None = None,
    y_scale: Value | None = None,
    y_zero_point: Value | None = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attribute's name
    transB: int = 0,  # noqa: N803 - the attribute's name
) -> Value:
    """Imports QGemm; `c` is `i32` in the matmul's scale; without `y_scale`, the result is `f32`."""
    expect_rank(a, "A", 2)
    expect_rank(b, "B", 2)
    unit, shift = parameters(context, a, a_scale, a_zero_point, "a")
    total = product(
        context,
        arith.transpose(context, a, [1, 0]) if transA else a,
        arith.transpose(context, b, [1, 0]) if transB else b,
        shift,
        zero_point_of(context, b_zero_point, b.dtype, "b_zero_point"),
    )
    if c is not None:
        total = _with_bias(context, total, c)
    scale = arith.multiply(context, unit, scale_of(context, b_scale, "b_scale"))
    if alpha != 1.0:
        scale = arith.multiply(context, scale, alpha)
    if y_scale is None:
        return dequantized(context, total, scale)
    if y_zero_point is None:
        raise NodeRefused("y_scale is given without y_zero_point, which says the result's type")
    result = parameters(context, y_zero_point, y_scale, y_zero_point, "y")
    return requantized(context, total, scale, *result, 1)


def _with_bias(context: NodeContext, total: Value, bias: Value) -> Value:
    """Returns accumulators plus a bias that broadcasts to them."""
    units = total.shape[1]
    if bias.shape not in ((units,), (1, units)):
        return context.emit(elementwise.AddOp, total, bias)
    return context.emit(nn.BiasAddOp, total, arith.reshape(context, bias, (units,)), axis=1)


@register_op(DOMAIN, "MatMulIntegerToFloat")
def matmul_integer_to_float(
    context: NodeContext,
    a: Value,
    b: Value,
    a_scale: Value,
    b_scale: Value,
    a_zero_point: Value | None = None,
    b_zero_point: Value | None = None,
    bias: Value | None = None,
) -> Value:
    own = parameters(context, a, a_scale, a_zero_point, "a")
    return arith.biased(context, _of_floats(context, a, own, b, b_scale, b_zero_point), bias)


@register_op(DOMAIN, "DynamicQuantizeMatMul")
def dynamic_quantize_matmul(
    context: NodeContext,
    a: Value,
    b: Value,
    b_scale: Value,
    b_zero_point: Value | None = None,
    bias: Value | None = None,
) -> Value:
    own = dynamic_parameters(context, a)
    whole = _of_floats(context, quantized(context, a, *own), own, b, b_scale, b_zero_point)
    return arith.biased(context, whole, bias)


def _of_floats(
    context: NodeContext,
    a: Value,
    own: tuple[Value, Value],
    b: Value,
    b_scale: Value,
    b_zero_point: Value | None,
) -> Value:
    """Returns the matmul of two quantised matrices in f32; the parameters of `b` may be per
    column.
    """
    scale = scale_of(context, b_scale, "b_scale")
    shift = zero_point_of(context, b_zero_point, b.dtype, "b_zero_point")
    if max(scale.rank, shift.rank) > 1:
        raise NodeRefused(
            f"b_scale and b_zero_point have shapes {list(scale.shape)} and {list(shift.shape)},"
            f" accepted are one number and [{b.shape[-1]}]"
        )
    total = product(context, a, b, own[1], shift)
    return dequantized(context, total, arith.multiply(context, own[0], scale), -1)


@register_op(DOMAIN, "QAttention")
def qattention(
    context: NodeContext,
    data: Value,
    weights: Value,
    bias: Value,
    data_scale: Value,
    weight_scale: Value,
    mask_index: Value | None = None,
    data_zero_point: Value | None = None,
    weight_zero_point: Value | None = None,
    past: Value | None = None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Sequence[Value | None]:
    expect_plain(do_rotary, past_present_share_buffer)
    expect_rank(data, "input", 3)
    expect_rank(weights, "weight", 2)
    own = parameters(context, data, data_scale, data_zero_point, "input")
    whole = _of_floats(context, data, own, weights, weight_scale, weight_zero_point)
    third = weights.shape[1] // 3
    return attention_of(
        context,
        cut(
            context,
            arith.biased(context, whole, bias),
            (third, third, weights.shape[1] - 2 * third),
        ),
        num_heads,
        mask_index,
        past,
        None,
        mask_filter_value=mask_filter_value,
        scale=scale,
        causal=bool(unidirectional),
    )


@register_op(DOMAIN, "QLinearConv", attributes=ConvAttributes)
def qlinear_conv_of_layouts(
    context: NodeContext,
    x: Value,
    x_scale: Value,
    x_zero_point: Value,
    w: Value,
    w_scale: Value,
    w_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value,
    bias: Value | None = None,
    *,
    attributes: ConvAttributes,
    channels_last: int = 0,
) -> Value:
    """Imports QLinearConv; with `channels_last`, data and result are NHWC."""
    result = qlinear_conv(
        context,
        arith.channels_second(context, x) if channels_last else x,
        x_scale,
        x_zero_point,
        w,
        w_scale,
        w_zero_point,
        y_scale,
        y_zero_point,
        bias,
        attributes=attributes,
    )
    return arith.channels_last(context, result) if channels_last else result
