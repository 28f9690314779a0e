"""Convolutions, pools and resizes that oneDNN runs, and the reasons why it refuses others."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import Operation

from byoc_mlir.backends.dnnl.partition.accepted_tensors import unsupported_shape
from byoc_mlir.backends.dnnl.partition.trial import slow_here
from byoc_mlir.dialects.relay import ConstantOp, image, pool, qnn_window, reduce, window
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.resampling import Taps
from byoc_mlir.onednn import constants
from byoc_mlir.tensors import Array

FEW_OUTPUTS = 8
"""Minimum number of output channels for which oneDNN is as fast as the host; measured with
AVX-512."""

MUCH_WORK = 1_000_000
"""Minimum MACs of a convolution for which a faster host outweighs splitting the region."""


def convolution(op: window.ConvOp | window.ConvTransposeOp) -> str | None:
    """Returns why oneDNN does not run a convolution, or `None`."""
    return _badly_vectorised(op) if isinstance(op, window.ConvOp) else None


def _badly_vectorised(op: window.ConvOp) -> str | None:
    """Returns why oneDNN vectorises a large convolution badly, or `None`.

    Either oneDNN unfolds the convolution into a larger GEMM, or it fills its vectors only partly.
    """
    outputs, depth, *kernel = shape_of(op.weight)
    if math.prod(shape_of(op.output)) * depth * math.prod(kernel) < MUCH_WORK:
        return None
    groups = op.groups.value.data
    if groups == 1 and outputs < FEW_OUTPUTS and math.prod(kernel) > 1:
        return f"few output channels fill no vector: {outputs} (the host vectorises over pixels)"
    if 1 < groups == outputs and len(kernel) == 1:
        return "a 1-D depthwise convolution (oneDNN copies its windows)"
    return None


def pooling(op: pool.PoolOp) -> str | None:
    """Accepts pools that oneDNN computes like Relay, in fast code."""
    source, kernel = shape_of(op.data), ints(op.pool_size)
    padding, dilation = ints(op.padding), ints(op.dilation)
    spatial = len(source) - 2
    for axis in range(spatial):
        span = (kernel[axis] - 1) * dilation[axis] + 1
        if max(padding[axis], padding[axis + spatial]) >= span:
            return f"padding {list(padding)} is not smaller than the window"
    if any(step != 1 for step in dilation):
        return f"dilation {list(dilation)} (oneDNN has only slow reference code for it)"
    if _counts_padding(op) and _reaches_beyond_padding(op):
        return "count_include_pad with windows beyond the padding"
    return None


def quantized_pooling(op: Operation) -> str | None:
    """Accepts average pools of 8-bit values whose result has the same type."""
    assert isinstance(op, qnn_window.QuantizedPoolOp)
    data, result = (tensor_type(value).element_type for value in (op.data, op.results[0]))
    if data != result:
        return f"{data} becomes {result} (oneDNN's pools keep the type)"
    zero_point = op.input_zero_point.owner
    if not all(isinstance(value.owner, ConstantOp) for value in op.operands[1:]):
        return "parameters that are not known"
    reason = unsupported_shape(op.data) or unsupported_shape(op.results[0])
    if reason is None and isinstance(op, qnn_window.QuantizedAvgPoolOp):
        reason = pooling(op)
        is_zero = isinstance(zero_point, ConstantOp) and not zero_point.array.any()
        if _counts_padding(op) and any(ints(op.padding)) and not is_zero:
            return "padding that counts, with a zero point other than oneDNN's 0"
    return reason or slow_here(op)


def _counts_padding(op: pool.PoolOp) -> bool:
    averages = (pool.AvgPoolOp, qnn_window.QuantizedAvgPoolOp)
    return isinstance(op, averages) and bool(op.count_include_pad.value.data)


def _reaches_beyond_padding(op: pool.PoolOp) -> bool:
    source, result, kernel = shape_of(op.data), shape_of(op.output), ints(op.pool_size)
    padding, strides, dilation = ints(op.padding), ints(op.strides), ints(op.dilation)
    spatial = len(source) - 2
    return any(
        (result[axis + 2] - 1) * strides[axis] + (kernel[axis] - 1) * dilation[axis] + 1
        > source[axis + 2] + padding[axis] + padding[axis + spatial]
        for axis in range(spatial)
    )


def resampling(op: image.ResizeOp) -> str | None:
    """Accepts resizes of spatial dimensions that map output to input positions as oneDNN does.

    oneDNN maps the centres of pixels. The result is the reason of a refusal, or `None`.
    """
    method, axes = op.method.data, op.resized_axes()
    if method not in constants.RESAMPLING or not 3 <= len(shape_of(op.data)) <= 5:
        return f"{method} on {op.data.type} (oneDNN has nearest and linear on [N, C, ...])"
    if any(axis < 2 for axis, _ in axes):
        return "the batch or the channels are resized"
    mode, rounding = op.coordinate_transformation_mode.data, op.rounding_method.data
    if not all(is_between_centres(taps, shape_of(op.data)[axis], method) for axis, taps in axes):
        return f"{method} with {mode} and {rounding} (oneDNN maps the centres of pixels)"
    return None


def spatial_reduction(op: reduce.MeanOp | reduce.MaxOp) -> str | None:
    """Accepts a reduction over all spatial dimensions, which equals a pool with one window."""
    rank = len(shape_of(op.data))
    if not 4 <= rank <= 5 or op.axes != tuple(range(2, rank)):
        return f"axes {list(op.axes)} of {op.data.type} (oneDNN's pool takes all spatial ones)"
    return None


_TOLERANCE = 1e-6


def is_between_centres(taps: Taps, size: int, method: str) -> bool:
    """True if an axis of `size` elements is resized like oneDNN's `nearest` or `linear`."""
    new_size = len(taps.positions)
    centres = (np.arange(new_size) + 0.5) * size / new_size - 0.5
    expected = np.zeros((new_size, size))
    rows = np.arange(new_size)
    if method == "nearest":
        expected[rows, np.floor(centres + 0.5).astype(int)] = 1.0
    else:
        low = np.maximum(np.floor(centres), 0).astype(int)
        high = np.minimum(np.ceil(centres), size - 1).astype(int)
        part = np.abs(centres - low)
        np.add.at(expected, (rows, low), 1.0 - part)
        np.add.at(expected, (rows, high), part)
    return not taps.outside.any() and bool(
        np.all(np.abs(_matrix(taps, size) - expected) < _TOLERANCE)
    )


def _matrix(taps: Taps, size: int) -> Array:
    """Returns the weight of every element, `[new size, size]`."""
    matrix = np.zeros((len(taps.positions), size))
    rows = np.broadcast_to(np.arange(len(taps.positions))[:, None], taps.positions.shape)
    np.add.at(matrix, (rows, taps.positions.astype(int)), taps.weights)
    return matrix
