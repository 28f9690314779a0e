"""Taps of a resized or sampled axis, that is elements to read and their weights.

The formulas work on numbers of any kind: numpy arrays, and scalars of a kernel that is generated
for symbolic sizes.

https://onnx.ai/onnx/operators/onnx__Resize.html
https://onnx.ai/onnx/operators/onnx__GridSample.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.limits import check_constant
from byoc_mlir.tensors import Array

Number: TypeAlias = Any
"""Array, or scalar of a kernel; it has Python's operators."""


@dataclass(frozen=True)
class Functions:
    """Functions of one kind of numbers."""

    select: Callable[[Any, Number, Number], Number]
    """Function that returns its second operand where the condition holds, else the third."""
    equal: Callable[[Number, float], Any]
    maximum: Callable[[Number, float], Number]
    like: Callable[[float, Number], Number]
    """Function that returns a Python number as one of the kind, and of the second's type."""
    abs: Callable[[Number], Number]
    floor: Callable[[Number], Number]
    ceil: Callable[[Number], Number]
    trunc: Callable[[Number], Number]
    round: Callable[[Number], Number]


def _like(number: float, array: Array) -> Array:
    return np.full_like(array, number)


OF_ARRAYS = Functions(
    np.where, np.equal, np.maximum, _like, np.abs, np.floor, np.ceil, np.trunc, np.rint
)


@dataclass(frozen=True)
class ResizedAxis:
    """Axis to resize: its sizes, `scale` (output to input) and the part `roi` to take."""

    size: Number
    new_size: Number
    scale: Number
    roi: tuple[float, float] = (0.0, 1.0)
    functions: Functions = OF_ARRAYS

    @property
    def exact_size(self) -> Number:
        """Returns the new size before it was rounded."""
        return self.scale * self.size

    def unless_one(self, single: Number, other: Number) -> Number:
        """Returns `single` if the exact size is 1, else `other`."""
        return self.functions.select(self.functions.equal(self.exact_size, 1), single, other)

    @property
    def last(self) -> Number:
        """Returns the exact size less 1, or 1 if that is 0."""
        return self.unless_one(1.0, self.exact_size - 1)


@dataclass(frozen=True)
class Taps:
    """`output[o] = sum over t of weights[o, t] * data[positions[o, t]]`.

    Where `outside[o]` is true, the output is the extrapolation value instead.
    """

    positions: Array
    weights: Array
    outside: Array


def _half_pixel(axis: ResizedAxis, at: Number) -> Number:
    return (at + 0.5) / axis.scale - 0.5


def _pytorch_half_pixel(axis: ResizedAxis, at: Number) -> Number:
    return axis.unless_one(-0.5, _half_pixel(axis, at))


def _half_pixel_symmetric(axis: ResizedAxis, at: Number) -> Number:
    rounding = axis.new_size / axis.exact_size
    return axis.size / 2 * (1 - rounding) + _half_pixel(axis, at)


def _align_corners(axis: ResizedAxis, at: Number) -> Number:
    return axis.unless_one(0.0, at * (axis.size - 1) / axis.last)


def _asymmetric(axis: ResizedAxis, at: Number) -> Number:
    return at / axis.scale


def _crop(axis: ResizedAxis, at: Number) -> Number:
    first, last = axis.roi
    length, end = last - first, axis.size - 1
    middle = end * length / 2 + end * first
    return axis.unless_one(middle, at * length * end / axis.last + end * first)


COORDINATES: Mapping[str, Callable[[ResizedAxis, Number], Number]] = {
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "tf_crop_and_resize": _crop,
}
"""Functions that return the input coordinate of each output element."""

ROUNDINGS: Mapping[str, Callable[[Functions, Number], Number]] = {
    "ceil": lambda of, x: of.ceil(x),
    "floor": lambda of, x: of.floor(x),
    "round_prefer_ceil": lambda of, x: of.floor(x + 0.5),
    "round_prefer_floor": lambda of, x: of.ceil(x - 0.5),
}

METHODS = ("nearest", "linear", "cubic")


def weight(of: Functions, distance: Number, method: str, alpha: float) -> Number:
    """Returns the weight of an element at a distance, by a method except `nearest`."""
    x = of.abs(distance)
    if method == "linear":
        return of.maximum(1 - x, 0)
    return of.select(x <= 1, _near(x, alpha), of.select(x < 2, _far(x, alpha), 0))


def _near(x: Number, alpha: float) -> Number:
    return (x * (alpha + 2) - (alpha + 3)) * x * x + 1


def _far(x: Number, alpha: float) -> Number:
    return ((x * alpha - 5 * alpha) * x + 8 * alpha) * x - 4 * alpha


@dataclass(frozen=True)
class SampledAxis:
    """Axis of an image that is read at computed coordinates."""

    size: int
    method: str = "linear"
    padding: str = "zeros"
    aligned: bool = False
    functions: Functions = OF_ARRAYS

    @property
    def ends(self) -> tuple[float, float]:
        """Returns the coordinates of the borders."""
        return (0.0, self.size - 1.0) if self.aligned else (-0.5, self.size - 0.5)

    def coordinate(self, at: Number) -> Number:
        """Returns the coordinate of a point of the grid, which spans [-1, 1]."""
        size, of, (low, high) = self.size, self.functions, self.ends
        x = (at + 1) / 2 * (size - 1) if self.aligned else ((at + 1) * size - 1) / 2
        if self.method == "nearest":
            x = of.round(x)
        if self.padding == "border" and self.method != "cubic":  # whose taps are moved one by one
            return of.select(x < low, 0.0, of.select(x > high, size - 1.0, x))
        return self.mirrored(x) if self.padding == "reflection" else x

    def mirrored(self, x: Number) -> Number:
        """Returns `x`, mirrored at the borders until it lies between them."""
        of, (low, high) = self.functions, self.ends
        length = high - low
        if length == 0:
            return of.like(low, x)
        outside = of.select(x < low, low - x, x - high)
        turns = of.trunc(outside / length)
        rest = outside - turns * length
        is_even = of.equal(turns - of.floor(turns / 2) * 2, 0)
        at_low, at_high = rest + low, high - rest
        mirrored = of.select(
            x < low, of.select(is_even, at_low, at_high), of.select(is_even, at_high, at_low)
        )
        return of.select(x < low, mirrored, of.select(x > high, mirrored, x))

    def base(self, x: Number) -> Number:
        """Returns the element before a coordinate; of a nearest one, the element itself."""
        of = self.functions
        return of.trunc(x) if self.method == "nearest" else of.floor(x)

    def weights(self, x: Number) -> Mapping[int, Number]:
        """Returns the weights of the elements to read, which are counted from the one before a
        coordinate; `x` is the distance from it.
        """
        if self.method == "nearest":
            return {0: 1}
        if self.method == "linear":
            return {0: 1 - x, 1: x}
        a = -0.75
        return {-1: _far(x + 1, a), 0: _near(x, a), 1: _near(1 - x, a), 2: _far(2 - x, a)}


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
        positions = ROUNDINGS[rounding](axis.functions, source)[:, None]
        weights = np.ones_like(positions)
    else:
        positions = np.floor(source)[:, None] + np.arange(first, 2 - first)
        weights = weight(axis.functions, (positions - source[:, None]) * stretch, method, alpha)
        if exclude_outside:
            weights *= (positions >= 0) & (positions < axis.size)
        if antialias or exclude_outside:
            total = weights.sum(1, keepdims=True)
            weights /= np.where(total == 0, 1, total)
    positions = np.clip(positions, 0, max(0, axis.size - 1)).astype(np.int64)
    return Taps(positions, weights, outside)
