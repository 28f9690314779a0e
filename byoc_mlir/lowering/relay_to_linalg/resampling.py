"""Tables of a resized axis: constants, or computed at run time for symbolic sizes.

The kernel has the formulas of `dialects.relay.resampling`.
"""

from __future__ import annotations

import math as pymath
from dataclasses import dataclass
from operator import methodcaller

from xdsl.dialects import math
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay.base import sizes_of, tensor_of
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.image import ResizeOp
from byoc_mlir.dialects.relay.resampling import (
    COORDINATES,
    ROUNDINGS,
    Functions,
    ResizedAxis,
    weight,
)
from byoc_mlir.dialects.relay.shape import at_most, is_symbolic
from byoc_mlir.dims import Size, largest
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num

_CROP = "tf_crop_and_resize"
"""Coordinates within a region."""


def functions_of(k: Kernel) -> Functions:
    """Returns functions of the kernel's scalars, which emit ops."""
    kinds = (math.AbsFOp, math.FloorOp, math.CeilOp, math.TruncOp, math.RoundEvenOp)
    unary = (methodcaller("unary", kind) for kind in kinds)
    return Functions(k.select, Num.equals, Num.max, k.like, *unary)


@dataclass(frozen=True)
class Tables:
    """Positions of the elements from which each element of a resized axis is interpolated, with
    their weights.
    """

    values: tuple[SSAValue, SSAValue, SSAValue]
    """Positions and weights `[new size, count]`, and flags of elements outside, `[new size]`."""
    count: int
    may_be_outside: bool


def tables_along(op: ResizeOp, b: LinalgBuilder, axis: int, type_: Attribute) -> Tables:
    """Returns the tables of an axis, with weights of a float type."""
    if is_symbolic((sizes_of(op.data)[axis], sizes_of(op.output)[axis])):
        return _Axis(op, axis).computed(b, type_)
    taps = op.taps_along(axis)
    values = (
        b.constant(taps.positions, "positions"),
        b.constant(taps.weights.astype(numpy_dtype(type_)), "weights"),
        b.constant(taps.outside, "outside"),
    )
    return Tables(values, taps.positions.shape[1], bool(taps.outside.any()))


class _Axis:
    """Builder of the tables of an axis with symbolic sizes."""

    def __init__(self, op: ResizeOp, axis: int):
        self._op = op
        self._size, self._new_size = sizes_of(op.data)[axis], sizes_of(op.output)[axis]
        self._scale, self._part = op.scale_of(axis), op.part_of(axis)
        if self._scale is None and not at_most(1, self._size):
            raise UndecidedSizeError(f"{op.name} resizes an axis of {self._size}, which may be 0")

    def computed(self, b: LinalgBuilder, type_: Attribute) -> Tables:
        """Emits the kernel that computes the tables."""
        count, new_size = 2 - 2 * self._first, self._new_size
        if self._op.method.data == "nearest":
            count = 1
        types = [
            tensor_of(i64, [new_size, count]),
            tensor_of(type_, [new_size, count]),
            tensor_of(i1, [new_size]),
        ]
        k = Kernel(self._op, [], types)
        positions, weights, outside = k.outputs
        crops = self._op.coordinate_transformation_mode.data == _CROP
        with k.loops([new_size], cost=32 * count) as (place,):
            source = self._source(k, k.index(place).to(f64))
            is_outside = (source < 0) | (source > self._number(k, self._size) - 1)
            outside[place] = is_outside if crops else k.constant(0, i1)
            if self._op.method.data == "nearest":
                element = ROUNDINGS[self._op.rounding_method.data](functions_of(k), source)
                positions[place, 0], weights[place, 0] = self._clamped(element), 1.0
            else:
                self._write_taps(k, place, source, positions, weights)
        values = tuple(k.finish(b))
        return Tables((values[0], values[1], values[2]), count, crops)

    @property
    def _stretch(self) -> float:
        """Returns the factor by which distances are multiplied to get weights, less than 1 for
        antialiasing.
        """
        if not self._op.antialias.value.data:
            return 1.0
        if self._scale is None:
            raise UndecidedSizeError(f"{self._op.name}: antialias needs a static scale")
        return min(self._scale, 1.0)

    @property
    def _first(self) -> int:
        """Returns the first tap, relative to the data element at or before the position."""
        reach = (2 if self._op.method.data == "cubic" else 1) / self._stretch
        return pymath.floor(-reach) + 1

    def _number(self, k: Kernel, size: Size) -> Num:
        return k.constant(size, f64)

    def _source(self, k: Kernel, at: Num) -> Num:
        """Emits the position in the data of an element of the result."""
        size, new_size = self._number(k, self._size), self._number(k, self._new_size)
        scale = new_size / size if self._scale is None else k.constant(self._scale, f64)
        axis = ResizedAxis(size, new_size, scale, self._part, functions_of(k))
        return COORDINATES[self._op.coordinate_transformation_mode.data](axis, at)

    def _clamped(self, position: Num) -> Num:
        """Emits a position clamped to the data."""
        return position.within(0, largest(0, self._size - 1)).to(i64)

    def _write_taps(
        self, k: Kernel, place: Index, source: Num, positions: Buffer, weights: Buffer
    ) -> None:
        """Writes the taps of an element of the result.

        An axis that keeps its size has equal taps of the element itself: a weight of zero would
        make NaN of an infinity there.
        """
        divisor, count, is_kept = self._divisor(k, source), 2 - 2 * self._first, self._is_kept(k)
        with k.loop(count) as tap:
            position, weight = self._tap(k, source, tap)
            if divisor is not None:
                weight = weight / divisor
            positions[place, tap] = k.select(
                is_kept, k.index(place).to(i64), self._clamped(position)
            )
            weights[place, tap] = k.select(is_kept, 1 / count, weight)

    def _is_kept(self, k: Kernel) -> Num:
        """Emits true if the axis keeps its size, and its elements their positions."""
        if self._scale is not None or self._op.coordinate_transformation_mode.data == _CROP:
            return k.constant(0, i1)
        return self._number(k, self._size).equals(self._number(k, self._new_size))

    def _divisor(self, k: Kernel, source: Num) -> Num | None:
        """Emits the sum of the weights, if it may differ from 1, else returns None."""
        if not self._op.exclude_outside.value.data and not self._op.antialias.value.data:
            return None
        total = k.variable(k.constant(0, f64))
        with k.loop(2 - 2 * self._first) as tap:
            total.value = total.value + self._tap(k, source, tap)[1]
        return k.select(total.value.equals(0), 1, total.value)

    def _tap(self, k: Kernel, source: Num, tap: Num) -> tuple[Num, Num]:
        """Emits the position and the weight of a tap."""
        position = source.unary(math.FloorOp) + (tap + self._first).to(f64)
        distance, alpha = (position - source) * self._stretch, self._op.cubic_alpha.value.data
        own = weight(functions_of(k), distance, self._op.method.data, alpha)
        if not self._op.exclude_outside.value.data:
            return position, own
        inside = (position >= 0) & (position < self._number(k, self._size))
        return position, k.select(inside, own, 0)
