"""Numpy semantics of dense layers, activations, normalisations and reductions; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byoc_mlir.dialects.relay import integers, nn, reduce
from byoc_mlir.dialects.relay.base import RelayOp, normalize_axis, shape_of
from byoc_mlir.dialects.relay.evaluate.elementwise import element_dtype, widened
from byoc_mlir.dialects.relay.evaluate.means import mean_of
from byoc_mlir.tensors import Array


def _along(vector: Array, axis: int, rank: int) -> Array:
    """A per-channel vector, shaped to broadcast along `axis`."""
    return widened(vector).reshape([-1 if i == axis else 1 for i in range(rank)])


def _dense(op: nn.DenseOp, data: Array, weight: Array) -> Array:
    return (widened(data) @ widened(weight).T).astype(element_dtype(op.output))


def _matmul(op: nn.MatmulOp, a: Array, b: Array) -> Array:
    left = a.swapaxes(-1, -2) if op.transpose_a.value.data else a
    right = b.swapaxes(-1, -2) if op.transpose_b.value.data else b
    return np.matmul(widened(left), widened(right)).astype(element_dtype(op.output))


def _bias_add(op: nn.BiasAddOp, data: Array, bias: Array) -> Array:
    return (widened(data) + _along(bias, op.positive_axis, data.ndim)).astype(data.dtype)


def _batch_norm(
    op: nn.BatchNormOp, data: Array, gamma: Array, beta: Array, mean: Array, variance: Array
) -> Sequence[Array]:
    scale, shift, centre, spread = (
        _along(vector, op.positive_axis, data.ndim) for vector in (gamma, beta, mean, variance)
    )
    deviation = np.sqrt(spread + spread.dtype.type(op.epsilon.value.data))
    output = (widened(data) - centre) / deviation * scale + shift
    return output.astype(data.dtype), mean, variance


def _layer_norm(op: nn.LayerNormOp, data: Array, gamma: Array, beta: Array) -> Array:
    wide = widened(data)
    axes = tuple(range(op.positive_axis, data.ndim))
    centred = wide - mean_of(wide, axes, keepdims=True)
    variance = mean_of(centred * centred, axes, keepdims=True)
    normal = centred / np.sqrt(variance + wide.dtype.type(op.epsilon.value.data))
    return (normal * widened(gamma) + widened(beta)).astype(data.dtype)


def _lrn(op: nn.LrnOp, data: Array) -> Array:
    if not data.size:
        return data
    wide = widened(data)
    size, axis = op.size.value.data, normalize_axis(op.axis.value.data, data.ndim)
    before, after = (size - 1) // 2, size // 2
    widths = [(before, after) if i == axis else (0, 0) for i in range(data.ndim)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(wide * wide, widths), size, axis)
    scale = op.bias.value.data + op.alpha.value.data / size * windows.sum(-1)
    return (wide / scale**op.beta.value.data).astype(data.dtype)


def _relu(op: nn.ReluOp, data: Array) -> Array:
    return np.maximum(data, data.dtype.type(0))


def _leaky_relu(op: nn.LeakyReluOp, data: Array) -> Array:
    wide = widened(data)
    slope = wide.dtype.type(op.alpha.value.data)
    return np.where(wide < 0, slope * wide, wide).astype(data.dtype)


def _prelu(op: nn.PreluOp, data: Array, slope: Array) -> Array:
    wide = widened(data)
    return np.where(wide < 0, widened(slope) * wide, wide).astype(data.dtype)


def _softmax(op: reduce.SoftmaxOp, data: Array) -> Array:
    return np.exp(_log_weights(op, data)).astype(data.dtype)


def _log_softmax(op: reduce.LogSoftmaxOp, data: Array) -> Array:
    return _log_weights(op, data).astype(data.dtype)


def _log_weights(op: reduce.SoftmaxLikeOp, data: Array) -> Array:
    if data.size == 0:
        return data
    axis = op.positive_axis
    shifted = widened(data) - widened(data).max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def _reduced(function: Callable[..., Any], empty: float) -> Callable[..., Array]:
    def apply(op: reduce.ReduceOp, data: Array) -> Array:
        if not op.axes:
            return data
        shape = shape_of(op.output)
        if data.size == 0:
            return np.full(shape, limit(empty, data.dtype), data.dtype)
        result = function(widened(data), axis=op.axes)
        return np.asarray(result).reshape(shape).astype(data.dtype)

    return apply


def limit(number: float, dtype: np.dtype[Any]) -> Any:
    """Infinity and NaN, or what stands for them in integers: an end of the range, and 0."""
    if np.isfinite(number) or dtype.kind not in "iub":
        return number
    if dtype.kind == "b":
        return number > 0
    if np.isnan(number):
        return 0
    return np.iinfo(dtype).max if number > 0 else np.iinfo(dtype).min


def _arg(function: Callable[..., Any]) -> Callable[..., Array]:
    def apply(op: reduce.ArgReduceOp, data: Array) -> Array:
        (axis,) = op.axes
        if not data.shape[axis]:  # numpy refuses it, though then nothing is to be found
            found = ()
        elif not op.select_last_index.value.data:
            found = function(data, axis=axis)
        else:
            found = data.shape[axis] - 1 - function(np.flip(data, axis), axis=axis)
        return np.asarray(found, np.int64).reshape(shape_of(op.output))

    return apply


def _mean(data: Array, axis: tuple[int, ...]) -> Array:
    if data.dtype.kind not in "iu":
        return mean_of(data, axis)
    count = np.prod([data.shape[i] for i in axis])
    return integers.divide(data.sum(axis, dtype=data.dtype), count.astype(data.dtype))


NN: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    nn.BatchNormOp: _batch_norm,
    nn.BiasAddOp: _bias_add,
    nn.DenseOp: _dense,
    nn.LayerNormOp: _layer_norm,
    nn.LeakyReluOp: _leaky_relu,
    nn.LrnOp: _lrn,
    nn.MatmulOp: _matmul,
    nn.PreluOp: _prelu,
    nn.ReluOp: _relu,
    reduce.ArgmaxOp: _arg(np.argmax),
    reduce.ArgminOp: _arg(np.argmin),
    reduce.LogSoftmaxOp: _log_softmax,
    reduce.MaxOp: _reduced(np.max, -np.inf),
    reduce.MeanOp: _reduced(_mean, np.nan),
    reduce.MinOp: _reduced(np.min, np.inf),
    reduce.ProdOp: _reduced(np.prod, 1.0),
    reduce.SoftmaxOp: _softmax,
    reduce.SumOp: _reduced(np.sum, 0.0),
}
