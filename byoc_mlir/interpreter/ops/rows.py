"""Reductions over axes from an attribute or an operand, and normalisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from byoc_mlir.interpreter.ops.errors import NotInterpretedError, axis_of
from byoc_mlir.numpy_ops import activation, normalization, reduction
from byoc_mlir.tensors import Array


def _over_axes(reduce: reduction.Reduction) -> Callable[..., Array]:
    def run(x: Array, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Array:
        given = () if axes is None else tuple(int(axis) for axis in axes)
        if not given and noop_with_empty_axes:
            return x
        return reduce(x, given or tuple(range(x.ndim)), bool(keepdims))

    return run


def _cumsum(x: Array, axis: Array, exclusive: int, reverse: int) -> Array:
    place = axis_of(int(axis.reshape(())), x.ndim)
    return reduction.cumsum(x, place, bool(exclusive), bool(reverse))


def _of_rows(function: Callable[[Array, int], Array]) -> Callable[..., Array]:
    """Returns the op for a function of one axis; before opset 13 it covers all later axes, too."""

    def run(x: Array, opset: int, axis: int = -1) -> Array:
        if opset >= 13:
            return function(x, axis)
        first = axis_of(axis, x.ndim)
        return function(x.reshape(prod(x.shape[:first]), -1) if x.size else x, -1).reshape(x.shape)

    return run


def _layer_norm(
    x: Array, scale: Array, bias: Array | None = None, axis: int = -1, epsilon: float = 1e-5
) -> Array:
    given = np.zeros((), np.float32) if bias is None else bias
    return normalization.layer_norm(x, scale, given, axis_of(axis, x.ndim), epsilon)


def _rms_norm(x: Array, scale: Array, axis: int = -1, epsilon: float = 1e-5) -> Array:
    return normalization.rms_norm(x, scale, axis_of(axis, x.ndim), epsilon)


def _skip_layer_norm(
    x: Array,
    skip: Array,
    scale: Array,
    shift: Array | None = None,
    bias: Array | None = None,
    epsilon: float = 1e-12,
) -> tuple[Array | None, ...]:
    total = _with_skip(x, skip, bias)
    return _layer_norm(total, scale, shift, -1, epsilon), None, None, total


def _skip_rms_norm(
    x: Array, skip: Array, scale: Array, bias: Array | None = None, epsilon: float = 1e-12
) -> tuple[Array | None, ...]:
    total = _with_skip(x, skip, bias)
    return _rms_norm(total, scale, -1, epsilon), None, None, total


def _with_skip(x: Array, skip: Array, bias: Array | None) -> Array:
    total = x + skip
    if total.shape != x.shape:
        raise NotInterpretedError("a skip connection that is larger than the data")
    return total if bias is None else total + bias


def _instance_norm(x: Array, scale: Array, bias: Array, epsilon: float = 1e-5) -> Array:
    if not x.size or scale.shape != x.shape[1:2] or bias.shape != scale.shape:
        raise NotInterpretedError(
            "normalisation of nothing, or scales that are not of its channels"
        )
    return normalization.instance_norm(x, scale, bias, epsilon)


def _batch_norm(x: Array, *statistics: Array, epsilon: float = 1e-5) -> Array:
    if x.ndim < 2 or any(each.shape != x.shape[1:2] for each in statistics):
        raise NotInterpretedError("statistics that are not those of channels")
    scale, bias, mean, variance = statistics
    return normalization.batch_norm(x, scale, bias, mean, variance, epsilon)


OPS: Mapping[str, Callable[..., Any]] = {
    "ArgMax": reduction.argmax,
    "ArgMin": reduction.argmin,
    "BatchNormalization": _batch_norm,
    "CumSum": _cumsum,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "LogSoftmax": _of_rows(activation.log_softmax),
    "RMSNormalization": _rms_norm,
    "ReduceL1": _over_axes(reduction.l1_norm),
    "ReduceL2": _over_axes(reduction.l2_norm),
    "ReduceLogSum": _over_axes(reduction.log_sum),
    "ReduceLogSumExp": _over_axes(reduction.log_sum_exp),
    "ReduceMax": _over_axes(reduction.largest),
    "ReduceMean": _over_axes(reduction.mean),
    "ReduceMin": _over_axes(reduction.smallest),
    "ReduceProd": _over_axes(reduction.product),
    "ReduceSum": _over_axes(reduction.total),
    "ReduceSumSquare": _over_axes(reduction.sum_of_squares),
    "SimplifiedLayerNormalization": _rms_norm,
    "com.microsoft.SkipLayerNormalization": _skip_layer_norm,
    "com.microsoft.SkipSimplifiedLayerNormalization": _skip_rms_norm,
    "Softmax": _of_rows(activation.softmax),
}
"""Implementations by their names in ONNX."""
