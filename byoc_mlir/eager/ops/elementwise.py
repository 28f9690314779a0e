"""Element-wise ops: a function of numpy each."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from onnx import helper

from byoc_mlir.eager.ops.op import Op
from byoc_mlir.tensors import Array


def _op(name: str, function: Callable[..., Any]) -> type[Op]:
    def run(_: Op, *operands: Array | None, **attributes: Any) -> tuple[Array]:
        return (function(*operands, **attributes),)

    return type(name, (Op,), {"_run": run})


def _quotient(one: Array, other: Array) -> Array:
    """Toward zero for integers; by zero it is zero."""
    if one.dtype.kind == "f":
        return np.divide(one, other)
    quotient = np.floor_divide(one, other)
    is_below = ((one < 0) != (other < 0)) & (quotient * other != one) & (other != 0)
    return quotient + is_below.astype(one.dtype)


def _power(base: Array, exponent: Array) -> Array:
    return np.asarray(np.power(base, exponent)).astype(base.dtype, copy=False)


def _sum(*terms: Array) -> Array:
    return reduce(np.add, terms)


def _mean(*terms: Array) -> Array:
    return np.divide(_sum(*terms), terms[0].dtype.type(len(terms)))


def _remainder(one: Array, other: Array, fmod: int) -> Array:
    """Of the sign of the divisor, or with `fmod` of that of the dividend."""
    return np.fmod(one, other) if fmod else np.mod(one, other)


def _clipped(x: Array, min: Any = None, max: Any = None) -> Array:
    """Between two numbers; where they are in the wrong order, the upper one."""
    above = x if min is None else np.maximum(x, x.dtype.type(min))
    return above if max is None else np.minimum(above, x.dtype.type(max))


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, x.dtype.type(0))


def _softsign(x: Array) -> Array:
    return x / (1 + np.abs(x))


def _prelu(x: Array, slope: Array) -> Array:
    return np.where(x < 0, x * slope, x)


def _leaky_relu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, x * x.dtype.type(alpha), x)


def _thresholded_relu(x: Array, alpha: float) -> Array:
    return np.where(x > x.dtype.type(alpha), x, x.dtype.type(0))


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, np.expm1(x) * x.dtype.type(alpha), x)


def _selu(x: Array, alpha: float, gamma: float) -> Array:
    return _elu(x, alpha) * x.dtype.type(gamma)


def _hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    return np.clip(x * x.dtype.type(alpha) + x.dtype.type(beta), 0, 1)


def _is_infinite(x: Array, detect_negative: int, detect_positive: int) -> Array:
    return np.isinf(x) & np.where(x < 0, bool(detect_negative), bool(detect_positive))


def _dropout(x: Array, *_: Array, **__: object) -> Array:
    """Nothing is left out but in training."""
    return x


def _cast(x: Array, to: int, **_: object) -> Array:
    return x.astype(helper.tensor_dtype_to_np_dtype(to))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _quotient,
    "Pow": _power,
    "Sum": _sum,
    "Mean": _mean,
    "Where": np.where,
    "Max": lambda *terms: reduce(np.maximum, terms),
    "Min": lambda *terms: reduce(np.minimum, terms),
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Not": np.logical_not,
    "Sqrt": np.sqrt,
    "Exp": np.exp,
    "Log": np.log,
    "Neg": np.negative,
    "Abs": np.abs,
    "Reciprocal": np.reciprocal,
    "Tanh": np.tanh,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Round": np.rint,
    "Sign": np.sign,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Atan": np.arctan,
    "Asinh": np.arcsinh,
    "Mod": _remainder,
    "Clip": _clipped,
    "Softplus": _softplus,
    "Softsign": _softsign,
    "PRelu": _prelu,
    "LeakyRelu": _leaky_relu,
    "ThresholdedRelu": _thresholded_relu,
    "Elu": _elu,
    "Selu": _selu,
    "HardSigmoid": _hard_sigmoid,
    "IsNaN": np.isnan,
    "IsInf": _is_infinite,
    "Cast": _cast,
    "Dropout": _dropout,
}

OPS = tuple(_op(name, function) for name, function in _FUNCTIONS.items())
