"""Dense layers, activations, normalisations, and ops that are identities at inference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from byoc_mlir.dialects.relay import elementwise, nn, reduce, transform
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast, scalar
from byoc_mlir.frontend.ops.norm import inverse_deviation, moments
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value


@onnx_op("Identity")
def identity(context: NodeContext, data: Value) -> Value:
    return data


@onnx_op("Relu")
def relu(context: NodeContext, data: Value) -> Value:
    return context.emit(nn.ReluOp, data)


@onnx_op("LeakyRelu")
def leaky_relu(context: NodeContext, data: Value, *, alpha: float = 0.01) -> Value:
    return context.emit(nn.LeakyReluOp, data, alpha=alpha)


@onnx_op("HardSigmoid")
def hard_sigmoid(
    context: NodeContext, data: Value, *, alpha: float = 0.2, beta: float = 0.5
) -> Value:
    line = arith.add(context, arith.multiply(context, data, alpha), beta)
    return context.emit(elementwise.ClipOp, line, a_min=0.0, a_max=1.0)


@onnx_op("HardSwish")
def hard_swish(context: NodeContext, data: Value) -> Value:
    return arith.multiply(context, data, hard_sigmoid(context, data, alpha=1 / 6, beta=0.5))


@onnx_op("Shrink")
def shrink(context: NodeContext, data: Value, *, bias: float = 0.0, lambd: float = 0.5) -> Value:
    """Imports Shrink; integers are computed in `f64`, so that `bias` and `lambd` may have
    fractions.
    """
    x = cast(context, data, np.dtype(np.float64)) if data.dtype.kind in "iu" else data
    above = arith.less(context, lambd, x)
    below = arith.less(context, x, -lambd)
    inner = arith.where(context, above, arith.subtract(context, x, bias), 0)
    outer = arith.where(context, below, arith.add(context, x, bias), inner)
    return cast(context, outer, data.dtype)


@onnx_op("PRelu")
def prelu_per_channel(context: NodeContext, data: Value, slope: Value) -> Value:
    if slope.rank == 1 and slope.sizes[0] != 1 and data.rank > 2:
        slope = context.emit(transform.ExpandDimsOp, slope, axis=range(1, data.rank - 1))
    return context.emit(nn.PreluOp, data, slope)


@onnx_op("PRelu", since=7)
def prelu(context: NodeContext, data: Value, slope: Value) -> Value:
    return context.emit(nn.PreluOp, data, slope)


@onnx_op("Softmax", since=13)
def softmax(context: NodeContext, data: Value, *, axis: int = -1) -> Value:
    return context.emit(reduce.SoftmaxOp, data, axis=axis)


@onnx_op("LogSoftmax", since=13)
def log_softmax(context: NodeContext, data: Value, *, axis: int = -1) -> Value:
    return context.emit(reduce.LogSoftmaxOp, data, axis=axis)


@onnx_op("Softmax")
def softmax_of_rows(context: NodeContext, data: Value, *, axis: int = 1) -> Value:
    return _of_rows(context, reduce.SoftmaxOp, data, axis)


@onnx_op("LogSoftmax")
def log_softmax_of_rows(context: NodeContext, data: Value, *, axis: int = 1) -> Value:
    return _of_rows(context, reduce.LogSoftmaxOp, data, axis)


def _of_rows(context: NodeContext, op: type[reduce.SoftmaxLikeOp], data: Value, axis: int) -> Value:
    """Applies an op to rows, as before opset 13: the dimensions from `axis` on are one row."""
    if not -data.rank <= axis <= data.rank:
        raise NodeRefused(
            f"axis is {axis}, accepted are {-data.rank} to {data.rank} for {list(data.sizes)}"
        )
    axis = axis % data.rank if axis != data.rank else axis
    rows, columns = math.prod(data.sizes[:axis]), math.prod(data.sizes[axis:])
    if axis < data.rank and math.prod(data.sizes[axis + 1 :]) == 1:
        return context.emit(op, data, axis=axis)
    matrix = context.emit(transform.ReshapeOp, data, newshape=[rows, columns])
    result = context.emit(op, matrix, axis=1)
    return context.emit(transform.ReshapeOp, result, newshape=data.sizes)


@onnx_op("LRN")
def lrn(
    context: NodeContext,
    data: Value,
    *,
    size: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Value:
    return context.emit(nn.LrnOp, data, size=size, alpha=alpha, beta=beta, bias=bias)


@onnx_op("BatchNormalization")
def batch_normalization(
    context: NodeContext,
    data: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
    is_test: int = 1,
    training_mode: int = 0,
) -> Sequence[Value]:
    if not spatial and data.rank > 2 and not any(context.wants(output) for output in range(1, 5)):
        return (_normalised_per_element(context, data, scale, bias, mean, variance, epsilon),)
    parameters = [cast(context, value, data.dtype) for value in (scale, bias)]
    if not training_mode:
        if any(context.wants(output) for output in range(1, 5)):
            raise NodeRefused("before opset 14 only inference is supported, with one output")
        statistics = [cast(context, value, data.dtype) for value in (mean, variance)]
        return (context.emit(nn.BatchNormOp, data, *parameters, *statistics, epsilon=epsilon),)
    axes = [axis for axis in range(data.rank) if axis != 1]
    channels = (data.sizes[1],)
    found = [arith.reshape(context, each, channels) for each in moments(context, data, axes)]
    output = context.emit(nn.BatchNormOp, data, *parameters, *found, epsilon=epsilon)
    running = [
        arith.add(
            context,
            arith.multiply(context, old, momentum),
            arith.multiply(context, cast(context, new, old.dtype), 1 - momentum),
        )
        for old, new in zip((mean, variance), found, strict=True)
    ]
    return output, *running


def _normalised_per_element(
    context: NodeContext,
    data: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    epsilon: float,
) -> Value:
    """Normalises data with a mean and variance per element, as with `spatial` 0."""
    normal = arith.multiply(
        context,
        arith.subtract(context, data, mean),
        inverse_deviation(context, variance, epsilon),
    )
    return arith.add(context, arith.multiply(context, normal, scale), bias)


@onnx_op("MatMul")
def matmul(context: NodeContext, a: Value, b: Value) -> Value:
    if b.constant is not None and b.rank == 2 and a.rank >= 1:
        return context.emit(nn.DenseOp, a, b.transposed)
    return stacked_product(context, a, b)


def stacked_product(context: NodeContext, a: Value, b: Value) -> Value:
    """Returns the matmul of matrices or batches of matrices; a vector `a` is a row, a vector `b` a
    column.
    """
    return arith.stacked(context, a, b, partial(context.emit, nn.MatmulOp))


@onnx_op("Gemm")
def gemm(
    context: NodeContext,
    a: Value,
    b: Value,
    c: Value | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,  # noqa: N803 - the attribute's name
    transB: int = 0,  # noqa: N803 - the attribute's name
    broadcast: int = 0,
) -> Value:
    product = _product(context, a, b, alpha, transpose_a=bool(transA), transpose_b=bool(transB))
    if c is None or beta == 0.0:
        return product
    c = scaled(context, c, beta)
    units = product.sizes[1]
    if c.constant is not None and c.sizes in ((units,), (1, units)):
        bias = context.derived(c, c.constant.reshape(units))
        return context.emit(nn.BiasAddOp, product, bias, axis=1)
    return context.emit(elementwise.AddOp, product, c)


def _product(
    context: NodeContext, a: Value, b: Value, alpha: float, *, transpose_a: bool, transpose_b: bool
) -> Value:
    if b.constant is None:
        product = context.emit(nn.MatmulOp, a, b, transpose_a=transpose_a, transpose_b=transpose_b)
        return scaled(context, product, alpha)
    data = context.emit(transform.TransposeOp, a, axes=[1, 0]) if transpose_a else a
    weight = b if transpose_b else b.transposed
    return context.emit(nn.DenseOp, data, scaled(context, weight, alpha))


def scaled(context: NodeContext, value: Value, factor: float) -> Value:
    """Returns `value` times a number.

    Raises:
        NodeRefused: `value` has integer elements, and the factor is no integer.
    """
    if factor == 1.0:
        return value
    if value.dtype.kind in "iu" and not factor.is_integer():
        raise NodeRefused(f"integers cannot be scaled by {factor}")
    number = scalar(value, factor)
    if value.constant is not None:
        return context.derived(value, np.asarray(value.constant * number, value.dtype))
    return context.emit(elementwise.MultiplyOp, value, number)
