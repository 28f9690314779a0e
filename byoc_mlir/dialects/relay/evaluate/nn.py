"""Evaluation of dense layers, activations, normalisations and reductions; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from byoc_mlir.dialects.relay import index, nn, reduce
from byoc_mlir.dialects.relay.base import RelayOp, normalize_axis, shape_of
from byoc_mlir.dialects.relay.evaluate.elementwise import (
    Evaluator,
    element_dtype,
    in_float,
    rounded,
)
from byoc_mlir.numpy_ops import activation, normalization, reduction
from byoc_mlir.numpy_ops.precision import widened
from byoc_mlir.tensors import Array


def _dense(op: nn.DenseOp, data: Array, weight: Array) -> Array:
    return (widened(data) @ widened(weight).T).astype(element_dtype(op.output))


def _matmul(op: nn.MatmulOp, a: Array, b: Array) -> Array:
    left = a.swapaxes(-1, -2) if op.transpose_a.value.data else a
    right = b.swapaxes(-1, -2) if op.transpose_b.value.data else b
    return np.matmul(widened(left), widened(right)).astype(element_dtype(op.output))


def _bias_add(op: nn.BiasAddOp, data: Array, bias: Array) -> Array:
    column = [-1 if place == op.positive_axis else 1 for place in range(data.ndim)]
    return rounded(np.add, data, bias.reshape(column))


def _batch_norm(op: nn.BatchNormOp, data: Array, *statistics: Array) -> Sequence[Array]:
    epsilon = op.epsilon.value.data
    output = rounded(
        normalization.batch_norm, data, *statistics, epsilon=epsilon, axis=op.positive_axis
    )
    return output, *statistics[2:]


def _layer_norm(op: nn.LayerNormOp, data: Array, gamma: Array, beta: Array) -> Array:
    epsilon = op.epsilon.value.data
    return rounded(
        normalization.layer_norm, data, gamma, beta, axis=op.positive_axis, epsilon=epsilon
    )


def _lrn(op: nn.LrnOp, data: Array) -> Array:
    return rounded(
        normalization.lrn,
        data,
        size=op.size.value.data,
        alpha=op.alpha.value.data,
        beta=op.beta.value.data,
        bias=op.bias.value.data,
        axis=normalize_axis(op.axis.value.data, data.ndim),
    )


def _leaky_relu(op: nn.LeakyReluOp, data: Array) -> Array:
    return rounded(activation.leaky_relu, data, alpha=op.alpha.value.data)


def _softmax(op: reduce.SoftmaxOp, data: Array) -> Array:
    return rounded(activation.softmax, data, axis=op.positive_axis)


def _log_softmax(op: reduce.LogSoftmaxOp, data: Array) -> Array:
    return rounded(activation.log_softmax, data, axis=op.positive_axis)


def _reduced(function: reduction.Reduction) -> Evaluator:
    def apply(op: reduce.ReduceOp, data: Array) -> Array:
        if not op.axes:
            return data
        return rounded(function, data, axes=tuple(op.axes)).reshape(shape_of(op.output))

    return apply


def _arg(function: Callable[[Array, int, bool, bool], Array]) -> Evaluator:
    def apply(op: reduce.ArgReduceOp, data: Array) -> Array:
        (axis,) = op.axes
        if not data.shape[axis]:  # numpy refuses it, though then nothing is to be found
            return np.zeros(shape_of(op.output), np.int64)
        found = function(data, axis, True, bool(op.select_last_index.value.data))
        return np.asarray(found, np.int64).reshape(shape_of(op.output))

    return apply


def _running(function: Callable[..., Array]) -> Evaluator:
    def apply(op: index.ScanOp, data: Array) -> Array:
        exclusive, reverse = bool(op.exclusive.value.data), bool(op.reverse.value.data)
        return rounded(function, data, axis=op.positive_axis, exclusive=exclusive, reverse=reverse)

    return apply


FUNCTIONS: dict[type[RelayOp], Evaluator] = {
    index.CumprodOp: _running(reduction.cumprod),
    index.CumsumOp: _running(reduction.cumsum),
    nn.BatchNormOp: _batch_norm,
    nn.BiasAddOp: _bias_add,
    nn.DenseOp: _dense,
    nn.LayerNormOp: _layer_norm,
    nn.LeakyReluOp: _leaky_relu,
    nn.LrnOp: _lrn,
    nn.MatmulOp: _matmul,
    nn.PreluOp: in_float(activation.prelu),
    reduce.ArgmaxOp: _arg(reduction.argmax),
    reduce.ArgminOp: _arg(reduction.argmin),
    reduce.LogSoftmaxOp: _log_softmax,
    reduce.MaxOp: _reduced(reduction.largest),
    reduce.MeanOp: _reduced(reduction.mean),
    reduce.MinOp: _reduced(reduction.smallest),
    reduce.ProdOp: _reduced(reduction.product),
    reduce.SoftmaxOp: _softmax,
    reduce.SumOp: _reduced(reduction.total),
}
