"""Element-wise ops, by their names in Relay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.numpy_ops import integers
from byoc_mlir.numpy_ops.activation import erf, relu, sigmoid, softsign
from byoc_mlir.tensors import Array

Function: TypeAlias = Callable[..., Any]


def _by_kind(of_integers: Callable[..., Array], of_floats: Function) -> Function:
    """Returns a function of two arrays of one type, which differs for integers and floats."""

    def apply(lhs: Array, rhs: Array) -> Any:
        return (of_integers if lhs.dtype.kind in "iu" else of_floats)(lhs, rhs)

    return apply


def _negative(x: Array) -> Array:
    return np.zeros_like(x) - x if x.dtype.kind == "u" else np.negative(x)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _power(base: Array, exponent: Array) -> Array:
    """Returns powers in the base's type; the exponent of floats may have another type."""
    if base.dtype.kind in "iu":
        return integers.power(base, exponent)
    return np.asarray(np.power(base, exponent)).astype(base.dtype, copy=False)


def clip(x: Array, low: Any = None, high: Any = None) -> Array:
    """Returns `x` clamped to two numbers; if they are in the wrong order, the upper one."""
    above = x if low is None else np.maximum(x, x.dtype.type(low))
    return above if high is None else np.minimum(above, x.dtype.type(high))


FUNCTIONS: Mapping[str, Function] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "add": np.add,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "bitwise_and": np.bitwise_and,
    "bitwise_not": np.invert,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "divide": _by_kind(integers.divide, np.divide),
    "erf": erf,
    "exp": np.exp,
    "floor": np.floor,
    "floor_mod": _by_kind(integers.floor_remainder, np.mod),
    "left_shift": np.left_shift,
    "log": np.log,
    "log1p": np.log1p,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mod": _by_kind(integers.remainder, np.fmod),
    "multiply": np.multiply,
    "negative": _negative,
    "nn.relu": relu,
    "power": _power,
    "right_shift": np.right_shift,
    "round": np.rint,
    "rsqrt": _rsqrt,
    "sigmoid": sigmoid,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "softsign": softsign,
    "sqrt": np.sqrt,
    "subtract": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
}
"""Functions whose results have the first operand's type."""

PREDICATES: Mapping[str, Function] = {
    "equal": np.equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_not": np.logical_not,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "not_equal": np.not_equal,
}
"""Functions whose results are booleans."""
