"""Reductions over axes, indices of extreme elements, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.numpy_ops import integers
from byoc_mlir.numpy_ops.precision import limit
from byoc_mlir.tensors import Array

Axes: TypeAlias = tuple[int, ...]
Reduction: TypeAlias = Callable[[Array, Axes, bool], Array]
"""Function of an array, axes, and True to keep the axes with size 1."""


def total(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns sums in the type of `x`."""
    return np.add.reduce(x, axes, x.dtype, keepdims=keepdims)


def product(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns products in the type of `x`."""
    return np.multiply.reduce(x, axes, x.dtype, keepdims=keepdims)


def mean(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns means, for integers rounded toward zero; without elements NaN, or 0 for integers."""
    count = np.asarray(prod(x.shape[axis] for axis in axes)).astype(x.dtype)
    divide = integers.divide if x.dtype.kind in "iu" else np.divide
    return divide(total(x, axes, keepdims), count)


def largest(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns the largest elements; without elements, the smallest value of the type."""
    return np.maximum.reduce(x, axes, keepdims=keepdims, **_start(x, -np.inf))


def smallest(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns the smallest elements; without elements, the largest value of the type."""
    return np.minimum.reduce(x, axes, keepdims=keepdims, **_start(x, np.inf))


def _start(x: Array, end: float) -> Mapping[str, Any]:
    return {} if x.size else {"initial": limit(end, x.dtype)}


def sum_of_squares(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns the sums of the squares."""
    return total(x * x, axes, keepdims)


def l1_norm(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns the sums of the absolute values."""
    return total(np.abs(x), axes, keepdims)


def l2_norm(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns the square roots of the sums of the squares."""
    return np.sqrt(sum_of_squares(x, axes, keepdims))


def log_sum(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns the logarithms of the sums."""
    return np.log(total(x, axes, keepdims))


def log_sum_exp(x: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Returns the logarithms of the sums of `exp(x)`, without overflow."""
    most = largest(x, axes, keepdims=True)
    most = np.where(np.isfinite(most), most, x.dtype.type(0))
    found = np.log(total(np.exp(x - most), axes, keepdims=True)) + most
    return found if keepdims else found.squeeze(axes)


def _places(function: Callable[..., Array]) -> Callable[[Array, int, int, int], Array]:
    """Returns a function for the indices of an axis's extremes; of equal ones the first, or
    last.
    """

    def run(x: Array, axis: int, keepdims: int, select_last_index: int = 0) -> Array:
        if not select_last_index:
            return function(x, axis, keepdims=bool(keepdims))
        return x.shape[axis] - 1 - function(np.flip(x, axis), axis, keepdims=bool(keepdims))

    return run


argmax, argmin = _places(np.argmax), _places(np.argmin)


def cumsum(x: Array, axis: int, exclusive: bool = False, reverse: bool = False) -> Array:
    """Returns the running sums along an axis."""
    return _running(np.add, x, axis, exclusive, reverse)


def cumprod(x: Array, axis: int, exclusive: bool = False, reverse: bool = False) -> Array:
    """Returns the running products along an axis."""
    return _running(np.multiply, x, axis, exclusive, reverse)


def _running(combine: np.ufunc, x: Array, axis: int, exclusive: bool, reverse: bool) -> Array:
    ordered = np.flip(x, axis) if reverse else x
    found = combine.accumulate(ordered, axis, x.dtype)
    if exclusive:
        found = np.roll(found, 1, axis)
        found[(slice(None),) * axis + (slice(1),)] = combine.identity
    return np.flip(found, axis) if reverse else found
