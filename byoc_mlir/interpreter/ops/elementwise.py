"""Element-wise ops of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from onnx import helper

from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.interpreter.tier_ops import TIER_OPS
from byoc_mlir.numpy_ops import activation
from byoc_mlir.numpy_ops.elementwise import FUNCTIONS, PREDICATES, clip
from byoc_mlir.tensors import Array


def _of_all(combine: np.ufunc) -> Callable[..., Array]:
    return lambda *terms: reduce(combine, terms)


def _mean(*terms: Array) -> Array:
    return np.divide(reduce(np.add, terms), terms[0].dtype.type(len(terms)))


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def _remainder(one: Array, other: Array, fmod: int) -> Array:
    """Returns the remainder with the sign of the divisor; with `fmod`, of the dividend."""
    return FUNCTIONS["mod" if fmod else "floor_mod"](one, other)


def _clip(x: Array, min: Any = None, max: Any = None) -> Array:
    return clip(x, min, max)


def _is_infinite(x: Array, detect_negative: int, detect_positive: int) -> Array:
    return np.isinf(x) & np.where(x < 0, bool(detect_negative), bool(detect_positive))


def _biased(function: Callable[..., Array], *given: str) -> Callable[[Array, Array | None], Array]:
    def run(x: Array, bias: Array | None = None) -> Array:
        if bias is not None and bias.shape != x.shape[-1:]:
            raise NotInterpretedError("a bias that is not one for each column")
        return function(x if bias is None else x + bias, *given)

    return run


def _quick_gelu(x: Array, alpha: float = 1.702) -> Array:
    return x * activation.sigmoid(x * x.dtype.type(alpha))


def _dropout(x: Array, *_: Array) -> Array:
    """Returns `x`, as dropout has no effect in inference."""
    return x


def _cast(x: Array, to: int) -> Array:
    return x.astype(helper.tensor_dtype_to_np_dtype(to))


_NAMES: Mapping[str, str] = {
    "Sub": "subtract",
    "Mul": "multiply",
    "Div": "divide",
    "Pow": "power",
    "Neg": "negative",
    "Relu": "nn.relu",
    "GreaterOrEqual": "greater_equal",
    "LessOrEqual": "less_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "Not": "logical_not",
}
"""Relay names of ops whose name in Relay differs."""

_SHARED = {**FUNCTIONS, **PREDICATES}
_FOUND = {name: _NAMES.get(name, name.lower()) for name in TIER_OPS}

OPS: Mapping[str, Callable[..., Any]] = {
    **{name: _SHARED[other] for name, other in _FOUND.items() if other in _SHARED},
    "Cast": _cast,
    "Clip": _clip,
    "Dropout": _dropout,
    "Elu": activation.elu,
    "Gelu": activation.gelu,
    "HardSigmoid": activation.hard_sigmoid,
    "HardSwish": activation.hard_swish,
    "IsInf": _is_infinite,
    "LeakyRelu": activation.leaky_relu,
    "Max": _of_all(np.maximum),
    "Mean": _mean,
    "Min": _of_all(np.minimum),
    "Mod": _remainder,
    "PRelu": activation.prelu,
    "Reciprocal": np.reciprocal,
    "Selu": activation.selu,
    "Softplus": activation.softplus,
    "Softsign": activation.softsign,
    "Sum": _of_all(np.add),
    "ThresholdedRelu": activation.thresholded_relu,
    "Where": _where,
    "com.microsoft.BiasGelu": _biased(activation.gelu),
    "com.microsoft.FastGelu": _biased(activation.gelu, "tanh"),
    "com.microsoft.Gelu": activation.gelu,
    "com.microsoft.QuickGelu": _quick_gelu,
}
"""Implementations by their names in ONNX."""
