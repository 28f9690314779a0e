"""LSTM with weights of integers, whose inputs and states are quantised step by step."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.heads import expect_rank, expect_shape
from byoc_mlir.frontend.ops.lstm import looped_lstm
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.ops.qnn import IntegerWeight, scale_of, zero_point_of
from byoc_mlir.frontend.ops.recurrent import Operands
from byoc_mlir.frontend.ops.recurrent_attributes import CellAttributes
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import Value


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
    """`w` and `r` are `[directions, in, 4 * hidden]`, the other way round than for LSTM."""
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
    """A stack of matrices, turned; scales and zero points for each, or for each unit."""
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
