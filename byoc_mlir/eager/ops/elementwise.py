"""Element-wise ops: a function of numpy each."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from byoc_mlir.eager.ops.op import Op
from byoc_mlir.tensors import Array


def _op(name: str, function: Callable[..., Any]) -> type[Op]:
    def run(self: Op, *operands: Array) -> tuple[Array]:
        return (function(*operands),)

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
}

OPS = tuple(_op(name, function) for name, function in _FUNCTIONS.items())
