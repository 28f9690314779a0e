"""Evaluation of ops on quantised tensors; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byoc_mlir.dialects.relay import qnn, qnn_window
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.element_types import integer_range
from byoc_mlir.dialects.relay.evaluate.window import average, correlate, correlate_transposed
from byoc_mlir.numpy_ops import integers
from byoc_mlir.numpy_ops.window import global_average_pool
from byoc_mlir.tensors import Array


def _spread(op: qnn.AffineOp, parameter: Array, data: Array) -> Array:
    """Returns a scale or zero point, shaped to broadcast to `data`."""
    if parameter.ndim == 0:
        return parameter
    axis = op.positive_axis
    if not op.block_size.value.data:
        return _along(parameter, axis, data.ndim)
    repeated = np.repeat(parameter, op.block_size.value.data, axis)
    return np.take(repeated, np.arange(data.shape[axis]), axis)


def _along(vector: Array, axis: int, rank: int) -> Array:
    """Returns a vector shaped to broadcast along `axis`; a scalar as it is."""
    if vector.ndim == 0:
        return vector
    return vector.reshape([-1 if i == axis else 1 for i in range(rank)])


def _centred(data: Array, zero_point: Array) -> Array:
    return data.astype(np.int32) - zero_point.astype(np.int32)


def _real(data: Array, scale: Array, zero_point: Array) -> Array:
    return _centred(data, zero_point).astype(np.float32) * scale


def _placed(scaled: Array, zero_point: Array) -> Array:
    """Rounds values in units of the result's scale, and clamps them to the zero point's type."""
    shifted = np.rint(scaled) + zero_point.astype(np.float32)
    low, high = map(np.float32, integer_range(zero_point.dtype))
    return integers.convert(np.minimum(np.maximum(shifted, low), high), zero_point.dtype)


def _quantize(op: qnn.QuantizeOp, data: Array, scale: Array, zero_point: Array) -> Array:
    return _placed(data / _spread(op, scale, data), _spread(op, zero_point, data))


def _dequantize(op: qnn.DequantizeOp, data: Array, scale: Array, zero_point: Array) -> Array:
    return _real(data, _spread(op, scale, data), _spread(op, zero_point, data))


def _requantize(
    op: qnn.RequantizeOp,
    data: Array,
    input_scale: Array,
    input_zero_point: Array,
    output_scale: Array,
    output_zero_point: Array,
) -> Array:
    ratio = input_scale / output_scale
    if ratio.ndim:
        ratio = _along(ratio, op.positive_axis, data.ndim)
    return _placed(_real(data, ratio, input_zero_point), output_zero_point)


def _dense(
    op: qnn.DenseOp, data: Array, weight: Array, data_zero_point: Array, weight_zero_point: Array
) -> Array:
    kernel = _centred(weight, _along(weight_zero_point, 0, 2))
    return np.matmul(_centred(data, data_zero_point), kernel.T)


def _matmul(
    op: qnn.MatmulOp, a: Array, b: Array, a_zero_point: Array, b_zero_point: Array
) -> Array:
    left, right = _centred(a, a_zero_point), _centred(b, b_zero_point)
    return np.matmul(
        left.swapaxes(-1, -2) if op.transpose_a.value.data else left,
        right.swapaxes(-1, -2) if op.transpose_b.value.data else right,
    )


def _conv(
    op: qnn_window.QuantizedConvOp,
    data: Array,
    weight: Array,
    data_zero_point: Array,
    weight_zero_point: Array,
) -> Array:
    kernel = _centred(weight, _along(weight_zero_point, 0, weight.ndim))
    return correlate(op, _centred(data, data_zero_point), kernel)


def _conv_transpose(
    op: qnn_window.QuantizedConvTransposeOp,
    data: Array,
    weight: Array,
    data_zero_point: Array,
    weight_zero_point: Array,
) -> Array:
    kernel = _centred(weight, _along(weight_zero_point, 1, weight.ndim))
    return correlate_transposed(op, _centred(data, data_zero_point), kernel)


def _binary(function: Callable[[Array, Array], Any]) -> Callable[..., Array]:
    def apply(
        op: qnn.BinaryOp,
        lhs: Array,
        rhs: Array,
        lhs_scale: Array,
        lhs_zero_point: Array,
        rhs_scale: Array,
        rhs_zero_point: Array,
        output_scale: Array,
        output_zero_point: Array,
    ) -> Array:
        one, two = _real(lhs, lhs_scale, lhs_zero_point), _real(rhs, rhs_scale, rhs_zero_point)
        return _placed(function(one, two) / output_scale, output_zero_point)

    return apply


def _pool(mean: Callable[[Any, Array], Array]) -> Callable[..., Array]:
    """Returns the evaluator of a quantised pool; `mean` computes the mean of centred elements."""

    def apply(
        op: qnn_window.QuantizedPoolOp,
        data: Array,
        input_scale: Array,
        input_zero_point: Array,
        output_scale: Array,
        output_zero_point: Array,
    ) -> Array:
        centred = _centred(data, input_zero_point).astype(np.float32)
        return _placed(mean(op, centred) * (input_scale / output_scale), output_zero_point)

    return apply


def _mean_of_all(op: qnn_window.QuantizedGlobalAvgPoolOp, data: Array) -> Array:
    return global_average_pool(data)


def _lookup(op: qnn.LookupOp, data: Array, table: Array) -> Array:
    return table[data.view(np.uint8)]


FUNCTIONS: dict[type[RelayOp], Callable[..., Array]] = {
    qnn.AddOp: _binary(np.add),
    qnn.DenseOp: _dense,
    qnn.DequantizeOp: _dequantize,
    qnn.LookupOp: _lookup,
    qnn.MatmulOp: _matmul,
    qnn.MultiplyOp: _binary(np.multiply),
    qnn.QuantizeOp: _quantize,
    qnn.RequantizeOp: _requantize,
    **dict.fromkeys(qnn_window.CONV.values(), _conv),
    **dict.fromkeys(qnn_window.CONV_TRANSPOSE.values(), _conv_transpose),
    **dict.fromkeys(qnn_window.AVG_POOL.values(), _pool(average)),
    **dict.fromkeys(qnn_window.GLOBAL_AVG_POOL.values(), _pool(_mean_of_all)),
}
