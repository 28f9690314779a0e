"""Taps of a resized axis, that is elements to read and their weights, in numpy.

https://onnx.ai/onnx/operators/onnx__Resize.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from byoc_mlir.limits import check_constant
from byoc_mlir.tensors import Array


@dataclass(frozen=True)
class ResizedAxis:
    """Axis to resize: its sizes, `scale` (output to input) and the part `roi` to take."""

    size: int
    new_size: int
    scale: float
    roi: tuple[float, float] = (0.0, 1.0)

    @property
    def exact_size(self) -> float:
        """Returns the new size before it was rounded."""
        return self.scale * self.size


@dataclass(frozen=True)
class Taps:
    """`output[o] = sum over t of weights[o, t] * data[positions[o, t]]`.

    Where `outside[o]` is true, the output is the extrapolation value instead.
    """

    positions: Array
    weights: Array
    outside: Array


def _half_pixel(axis: ResizedAxis, at: Array) -> Array:
    return (at + 0.5) / axis.scale - 0.5


def _pytorch_half_pixel(axis: ResizedAxis, at: Array) -> Array:
    return np.full_like(at, -0.5) if axis.exact_size == 1 else _half_pixel(axis, at)


def _half_pixel_symmetric(axis: ResizedAxis, at: Array) -> Array:
    rounding = axis.new_size / axis.exact_size
    return axis.size / 2 * (1 - rounding) + _half_pixel(axis, at)


def _align_corners(axis: ResizedAxis, at: Array) -> Array:
    if axis.exact_size == 1:
        return np.zeros_like(at)
    return at * (axis.size - 1) / (axis.exact_size - 1)


def _asymmetric(axis: ResizedAxis, at: Array) -> Array:
    return at / axis.scale


def _crop(axis: ResizedAxis, at: Array) -> Array:
    first, last = axis.roi
    length, end = last - first, axis.size - 1
    if axis.exact_size == 1:
        return np.full_like(at, length * end / 2 + first * end)
    return at * length * end / (axis.exact_size - 1) + first * end


COORDINATES: Mapping[str, Callable[[ResizedAxis, Array], Array]] = {
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_crop_and_resize": _crop,
}
"""Functions that return the input coordinate of each output element."""

ROUNDINGS: Mapping[str, Callable[[Array], Array]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
}

METHODS = ("nearest", "linear", "cubic")


def _cubic(distance: Array, alpha: float) -> Array:
    x = np.abs(distance)
    near = ((alpha + 2) * x - (alpha + 3)) * x * x + 1
    far = ((alpha * x - 5 * alpha) * x + 8 * alpha) * x - 4 * alpha
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _linear(distance: Array) -> Array:
    return np.clip(1 - np.abs(distance), 0, None)


def taps(
    axis: ResizedAxis,
    method: str,
    coordinates: str,
    rounding: str,
    *,
    alpha: float = -0.75,
    antialias: bool = False,
    exclude_outside: bool = False,
) -> Taps:
    """Returns the taps of a resized axis.

    Args:
        method, coordinates, rounding: one of `METHODS`, `COORDINATES`, `ROUNDINGS`.
        alpha: the coefficient of the cubic kernel.
        antialias: True to stretch the kernel when the axis shrinks.
        exclude_outside: True to give elements beyond the border the weight 0; otherwise the border
            element is repeated.
    """
    stretch = min(axis.scale, 1.0) if antialias else 1.0
    reach = (2 if method == "cubic" else 1) / stretch
    first = math.floor(-reach) + 1
    count = 1 if method == "nearest" else 2 - 2 * first
    check_constant([axis.new_size, count], 8, "the positions of a Resize")
    source = COORDINATES[coordinates](axis, np.arange(axis.new_size, dtype=np.float64))
    outside = np.zeros(axis.new_size, np.bool_)
    if coordinates == "tf_crop_and_resize":
        outside = (source < 0) | (source > axis.size - 1)
    if method == "nearest":
        positions = ROUNDINGS[rounding](source)[:, None]
        weights = np.ones_like(positions)
    else:
        positions = np.floor(source)[:, None] + np.arange(first, 2 - first)
        distance = (positions - source[:, None]) * stretch
        weights = _cubic(distance, alpha) if method == "cubic" else _linear(distance)
        if exclude_outside:
            weights *= (positions >= 0) & (positions < axis.size)
        if antialias or exclude_outside:
            total = weights.sum(1, keepdims=True)
            weights /= np.where(total == 0, 1, total)
    positions = np.clip(positions, 0, max(0, axis.size - 1)).astype(np.int64)
    return Taps(positions, weights, outside)
