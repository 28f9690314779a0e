"""Normalisations, some rows at a time, so that rows are read from memory once."""

from __future__ import annotations

from math import prod

import numpy as np

from byoc_mlir.tensors import Array

_BLOCK = 1 << 15
"""Elements of the rows that are normalised at a time."""


def _standardised(rows: Array, epsilon: float, scale: Array, bias: Array) -> Array:
    """Returns rows with mean 0 and variance 1, times a scale, plus a bias.

    Scale and bias are one row for all rows, or one column with a number for each row.
    """
    count, width = rows.shape
    number = rows.dtype.type
    result = np.empty((count, width), rows.dtype)
    height = max(_BLOCK // max(width, 1), 1)
    for first in range(0, count, height):
        some = slice(first, first + height)
        moved = result[some]
        mean = np.einsum("rc->r", rows[some]) / number(width)
        np.subtract(rows[some], mean[:, None], out=moved)
        variance = np.einsum("rc,rc->r", moved, moved)
        variance /= number(width)
        variance += number(epsilon)
        np.sqrt(variance, out=variance)
        moved /= variance[:, None]
        moved *= scale[some] if len(scale) > 1 else scale
        moved += bias[some] if len(bias) > 1 else bias
    return result


def layer_norm(x: Array, scale: Array, bias: Array, axis: int, epsilon: float) -> Array:
    """Returns `x` normalised over `axis` and all later axes."""
    tail = x.shape[axis:]
    rows = x.reshape(prod(x.shape[:axis]), prod(tail))
    scales, biases = (np.broadcast_to(each, tail).reshape(1, -1) for each in (scale, bias))
    return _standardised(rows, epsilon, scales, biases).reshape(x.shape)


def rms_norm(x: Array, scale: Array, axis: int, epsilon: float) -> Array:
    """Returns `x` divided by its root mean square over `axis` and all later axes, times a scale."""
    tail = x.shape[axis:]
    rows = x.reshape(prod(x.shape[:axis]), prod(tail))
    square = np.einsum("rc,rc->r", rows, rows) / x.dtype.type(rows.shape[1])
    result = rows / np.sqrt(square + x.dtype.type(epsilon))[:, None]
    result *= np.broadcast_to(scale, tail).reshape(-1)
    return result.reshape(x.shape)


def instance_norm(x: Array, scale: Array, bias: Array, epsilon: float) -> Array:
    """Returns `x` with each channel of each image normalised."""
    rows = x.reshape(x.shape[0] * x.shape[1], -1)
    scales, biases = (np.tile(each, x.shape[0])[:, None] for each in (scale, bias))
    return _standardised(rows, epsilon, scales, biases).reshape(x.shape)


def batch_norm(
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    variance: Array,
    epsilon: float,
    axis: int = 1,
) -> Array:
    """Returns `x` normalised by the statistics of its channels, which lie along `axis`."""
    column = [-1 if place == axis else 1 for place in range(x.ndim)]
    factor = scale / np.sqrt(variance + variance.dtype.type(epsilon))
    result = x * factor.reshape(column)
    result += (bias - mean * factor).reshape(column)
    return result


def lrn(x: Array, size: int, alpha: float, beta: float, bias: float, axis: int = 1) -> Array:
    """Returns `x` divided by a power of the sum of squares of `size` neighbours along an axis."""
    if not x.size:
        return x
    widths = [(0, 0)] * x.ndim
    widths[axis] = ((size - 1) // 2, size // 2)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x * x, widths), size, axis)
    return x / (bias + alpha / size * windows.sum(-1)) ** beta
