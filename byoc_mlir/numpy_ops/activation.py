"""Activations, computed block by block, so that intermediate values stay in the L2 cache."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from byoc_mlir.tensors import Array

_BLOCK = 1 << 14
"""Elements of a block: 64 KB of `f32`, of which L2 holds several."""


def _by_blocks(step: Callable[[Array, Array], object], x: Array) -> Array:
    """Applies an element-wise function block by block; it writes to its second array."""
    result = np.empty(x.shape, x.dtype)
    source, target = np.ravel(x), result.reshape(-1)
    for first in range(0, source.size, _BLOCK):
        step(source[first : first + _BLOCK], target[first : first + _BLOCK])
    return result


def relu(x: Array) -> Array:
    """Returns `max(x, 0)`."""
    return np.maximum(x, x.dtype.type(0))


def leaky_relu(x: Array, alpha: float) -> Array:
    """Returns `x`, and `alpha * x` where it is negative."""
    return prelu(x, x.dtype.type(alpha))


def prelu(x: Array, slope: Array) -> Array:
    """Returns `x`, and `slope * x` where it is negative."""
    return np.where(x < 0, x * slope, x)


def thresholded_relu(x: Array, alpha: float) -> Array:
    """Returns `x`, and 0 where it is not above `alpha`."""
    return np.where(x > x.dtype.type(alpha), x, x.dtype.type(0))


def elu(x: Array, alpha: float) -> Array:
    """Returns `x`, and `alpha * (exp(x) - 1)` where it is negative."""
    return np.where(x < 0, np.expm1(x) * x.dtype.type(alpha), x)


def selu(x: Array, alpha: float, gamma: float) -> Array:
    """Returns `gamma * elu(x, alpha)`."""
    return elu(x, alpha) * x.dtype.type(gamma)


def hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    """Returns `alpha * x + beta` between 0 and 1."""
    result = np.asarray(x * x.dtype.type(alpha))
    result += x.dtype.type(beta)
    return np.clip(result, 0, 1, out=result)


def softplus(x: Array) -> Array:
    """Returns `log(1 + exp(x))`, without overflow."""
    return np.logaddexp(x, x.dtype.type(0))


def softsign(x: Array) -> Array:
    """Returns `x / (1 + |x|)`."""
    return x / (1 + np.abs(x))


def sigmoid(x: Array) -> Array:
    """Returns `1 / (1 + exp(-x))`, which is 0 where the power overflows."""
    return _by_blocks(_sigmoid, x)


def _sigmoid(x: Array, out: Array) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


def erf(x: Array) -> Array:
    """Returns the error function; for `f32` with a relative error of 2e-7."""
    if x.dtype != np.float32:
        return np.asarray(_exact_erf(x)).astype(x.dtype)
    return _by_blocks(_erf, x)


_exact_erf = np.vectorize(math.erf, otypes=[np.float64])


def _erf(x: Array, out: Array) -> None:
    """Writes the error function of `f32`.

    It is `tanh(x * p(x * x))`, where the polynomial `p` approximates `atanh(erf(x)) / x`. Errors of
    `p` matter less as the result approaches 1; from 3.95 on, the result is 1.
    """
    clipped = np.clip(x, -_ERF_END, _ERF_END)
    square = clipped * clipped
    np.multiply(square, _ERF[0], out=out)
    for coefficient in _ERF[1:-1]:
        np.add(out, coefficient, out=out)
        np.multiply(out, square, out=out)
    np.add(out, _ERF[-1], out=out)
    np.multiply(out, clipped, out=out)
    np.tanh(out, out=out)
    is_one = np.abs(clipped) == _ERF_END
    if is_one.any():  # the polynomial ends slightly below 1, which matters for a large factor
        np.copysign(np.float32(1), clipped, out=out, where=is_one)


_ERF_END = np.float32(3.95)
_ERF = np.array(
    [
        -1.6370512366652468e-09,
        5.381341547512519e-08,
        -5.140032812890401e-07,
        -1.8666624922641025e-06,
        7.65043295677154e-05,
        -0.0006037003535882099,
        -0.0002021404558222484,
        0.1027713126700273,
        1.1283792023867183,
    ],
    np.float32,
)
"""Coefficients of a least-squares fit, reweighted to minimise the largest error."""


def gelu(x: Array, approximate: str = "none") -> Array:
    """Returns `x * (1 + erf(x / sqrt(2))) / 2` of `f32`, or its approximation by `tanh`."""
    return _by_blocks(_gelu if approximate == "none" else _gelu_by_tanh, x)


def _gelu(x: Array, out: Array) -> None:
    _erf(x * np.float32(np.sqrt(0.5)), out)
    _halve(x, out)


def _gelu_by_tanh(x: Array, out: Array) -> None:
    np.multiply(x, x, out=out)
    np.multiply(out, np.float32(0.044715), out=out)
    np.add(out, 1, out=out)
    np.multiply(out, x, out=out)
    np.multiply(out, np.float32(np.sqrt(2 / np.pi)), out=out)
    np.tanh(out, out=out)
    _halve(x, out)


def _halve(x: Array, out: Array) -> None:
    """Writes `x * ((1 + out) / 2)`."""
    np.add(out, 1, out=out)
    np.multiply(out, np.float32(0.5), out=out)
    np.multiply(out, x, out=out)


def hard_swish(x: Array) -> Array:
    """Returns `x * clip(x / 6 + 1 / 2, 0, 1)` of `f32`."""
    return _by_blocks(_hard_swish, x)


def _hard_swish(x: Array, out: Array) -> None:
    np.multiply(x, np.float32(1 / 6), out=out)
    np.add(out, np.float32(0.5), out=out)
    np.clip(out, 0, 1, out=out)
    np.multiply(out, x, out=out)


def softmax(x: Array, axis: int) -> Array:
    """Returns `exp(x)` divided by its sum along an axis."""
    return _along_axis(_softmax, x, axis)


def log_softmax(x: Array, axis: int) -> Array:
    """Returns the logarithm of `softmax(x, axis)`."""
    return _along_axis(_log_softmax, x, axis)


def _along_axis(step: Callable[[Array, Array], object], x: Array, axis: int) -> Array:
    """Applies a function to rows along an axis, block by block; it writes to its second array."""
    if not x.size:
        return x
    if not x.ndim:
        return _along_axis(step, x.reshape(1), axis).reshape(())
    moved = np.moveaxis(x, axis, -1)
    rows = moved.reshape(-1, moved.shape[-1])
    result = np.empty(rows.shape, rows.dtype)
    height = max(_BLOCK // rows.shape[1], 1)
    for first in range(0, len(rows), height):
        step(rows[first : first + height], result[first : first + height])
    return np.moveaxis(result.reshape(moved.shape), -1, axis)


def _softmax(rows: Array, out: Array) -> None:
    np.subtract(rows, np.maximum.reduce(rows, axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.multiply(out, np.reciprocal(np.einsum("rc->r", out))[:, None], out=out)


def _log_softmax(rows: Array, out: Array) -> None:
    np.subtract(rows, np.maximum.reduce(rows, axis=1, keepdims=True), out=out)
    np.subtract(out, np.log(np.einsum("rc->r", np.exp(out)))[:, None], out=out)
