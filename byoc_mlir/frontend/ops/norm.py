"""Normalisations that are composed of several ops, and power pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, logic, nn, reduce
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value


def moments(context: NodeContext, data: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    """Returns mean and variance over `axes`, which the results keep with size 1."""
    mean = arith.reduced(context, reduce.MeanOp, data, axes)
    centred = arith.subtract(context, data, mean)
    square = arith.multiply(context, centred, centred)
    return mean, arith.reduced(context, reduce.MeanOp, square, axes)


def inverse_deviation(context: NodeContext, variance: Value, epsilon: float) -> Value:
    """Returns `1 / sqrt(variance + epsilon)`."""
    deviation = context.emit(elementwise.SqrtOp, arith.add(context, variance, epsilon))
    return arith.divide(context, 1.0, deviation)


@onnx_op("LayerNormalization")
def layer_normalization(
    context: NodeContext,
    data: Value,
    scale: Value,
    bias: Value | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Sequence[Value]:
    axis = normalize_axis(axis, data.rank)
    shape = data.sizes[axis:]
    given = [scale] if bias is None else [scale, bias]
    is_wide = any(size != 1 for value in given for size in value.sizes[: -len(shape)])
    inner = [] if is_wide else [_broadcast_inner(context, value, shape) for value in given]
    inner += [_filled(context, shape, data.dtype, number) for number in (1, 0)[len(inner) :]]
    output = context.emit(nn.LayerNormOp, data, *inner, axis=axis, epsilon=epsilon)
    if is_wide:
        scale, *shifts = (arith.broadcast(context, value, data.sizes) for value in given)
        output = arith.multiply(context, output, scale)
        output = arith.add(context, output, shifts[0]) if shifts else output
    if not (context.wants(1) or context.wants(2)):
        return (output,)
    wide = cast(context, data, np.dtype(np.float32)) if stash_type == 1 else data
    mean, variance = moments(context, wide, range(axis, data.rank))
    return output, mean, inverse_deviation(context, variance, epsilon)


def _broadcast_inner(context: NodeContext, value: Value, shape: Sequence[Size]) -> Value:
    """Returns `value` broadcast to `shape`, of which leading dimensions of 1 are omitted."""
    inner = arith.reshape(context, value, value.sizes[-len(shape) :])
    return arith.broadcast(context, inner, shape)


def _filled(context: NodeContext, sizes: Sequence[Size], dtype: np.dtype[Any], value: int) -> Value:
    return arith.broadcast(context, context.constant(value, dtype), sizes)


@onnx_op("InstanceNormalization")
def instance_normalization(
    context: NodeContext,
    data: Value,
    scale: Value,
    bias: Value,
    *,
    epsilon: float = 1e-5,
) -> Value:
    mean, variance = moments(context, data, range(2, data.rank))
    centred = arith.subtract(context, data, mean)
    normal = arith.multiply(context, centred, inverse_deviation(context, variance, epsilon))
    scaled = arith.multiply(context, normal, arith.along(context, scale, 1, data.rank))
    return arith.add(context, scaled, arith.along(context, bias, 1, data.rank))


@onnx_op("MeanVarianceNormalization")
def mean_variance_normalization(
    context: NodeContext, data: Value, *, axes: Sequence[int] = (0, 2, 3)
) -> Value:
    """Imports MeanVarianceNormalization, with the variance of centred data.

    ONNX's function subtracts the squared mean from the mean square, which loses digits for data far
    from zero.
    """
    mean, variance = moments(context, data, axes or range(data.rank))
    deviation = context.emit(elementwise.SqrtOp, variance)
    centred = arith.subtract(context, data, mean)
    return arith.divide(context, centred, arith.add(context, deviation, 1e-9))


@onnx_op("LpNormalization")
def lp_normalization(context: NodeContext, data: Value, *, axis: int = -1, p: int = 2) -> Value:
    norm = _p_norm(context, data, p, [axis])
    is_zero = context.emit(logic.EqualOp, norm, norm.dtype.type(0))
    return arith.divide(context, data, arith.where(context, is_zero, 1.0, norm))


def _p_norm(context: NodeContext, data: Value, p: int, axes: Sequence[int]) -> Value:
    if p < 1:
        raise VerifyException(f"p is {p}, accepted are 1 and more")
    magnitude = data if p % 2 == 0 else context.emit(elementwise.AbsOp, data)
    if p == 1:
        return arith.reduced(context, reduce.SumOp, magnitude, axes)
    total = arith.reduced(context, reduce.SumOp, arith.power(context, magnitude, p), axes)
    return arith.power(context, total, 1.0 / p)


@onnx_op("GlobalLpPool")
def global_lp_pool(context: NodeContext, data: Value, *, p: int = 2) -> Value:
    return _p_norm(context, data, p, range(2, data.rank))
