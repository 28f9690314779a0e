"""Pools: along one spatial dimension after the other, so few elements are read more than once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from byoc_mlir.eager.ops.errors import NotEagerError
from byoc_mlir.eager.ops.op import Op
from byoc_mlir.eager.ops.window import Axis, Placing, window_axes
from byoc_mlir.tensors import Array


class MaxPool(Op):
    """ONNX's MaxPool of any number that NumPy knows.

    Raises:
        NotEagerError: the places of the largest elements are asked for.
    """

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        if len(self.node.output) > 1 and self.node.output[1]:
            raise NotEagerError("MaxPool with a second output")
        least = -np.inf if np.issubdtype(x.dtype, np.floating) else np.iinfo(x.dtype).min
        axes = _axes(x, attributes)
        _elements_counted(axes)
        return (_reduced(x, axes, np.maximum, least),)


class AveragePool(Op):
    """ONNX's AveragePool of `f32` and `f64`.

    Raises:
        NotEagerError: another type.
    """

    def _run(self, x: Array, **attributes: Any) -> tuple[Array]:
        if x.dtype.type not in (np.float32, np.float64):
            raise NotEagerError(f"AveragePool of {x.dtype}")
        axes = _axes(x, attributes)
        result = _reduced(x, axes, np.add, 0)
        counts = _elements_counted(axes, with_padding=bool(attributes["count_include_pad"]))
        for place, count in enumerate(counts):
            result = result / count.astype(x.dtype).reshape(-1, *[1] * (len(axes) - 1 - place))
        return (result,)


class GlobalAveragePool(Op):
    """ONNX's GlobalAveragePool, summed up in `f64`."""

    def _run(self, x: Array) -> tuple[Array]:
        axes = tuple(range(2, x.ndim))
        return (np.mean(x, axis=axes, dtype=np.float64, keepdims=True).astype(x.dtype),)


class GlobalMaxPool(Op):
    """ONNX's GlobalMaxPool."""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.max(x, axis=tuple(range(2, x.ndim)), keepdims=True),)


def _axes(x: Array, attributes: dict[str, Any]) -> tuple[Axis, ...]:
    kernel = tuple(attributes["kernel_shape"])
    return window_axes(x.shape[2:], kernel, Placing.of(attributes))


@lru_cache(1024)
def _elements_counted(axes: tuple[Axis, ...], *, with_padding: bool = False) -> Sequence[Array]:
    """How many elements each window has along each axis.

    Raises:
        NotEagerError: one has none.
    """
    counts: list[Array] = []
    for axis in axes:
        starts = np.arange(axis.count)[:, np.newaxis] * axis.stride - axis.begin
        places = starts + np.arange(axis.kernel) * axis.dilation
        first, last = (-axis.begin, axis.size + axis.end) if with_padding else (0, axis.size)
        counts.append(np.sum((places >= first) & (places < last), axis=1))
        if np.any(np.sum((places >= 0) & (places < axis.size), axis=1) == 0):
            raise NotEagerError("a window has nothing but padding")
    return counts


def _reduced(x: Array, axes: Sequence[Axis], reduce: np.ufunc, neutral: float) -> Array:
    """The windows of `x`, each reduced to one element; `x` itself where each has but one."""
    for place, axis in enumerate(axes):
        if axis.kernel == axis.stride == 1 and axis.count == axis.size:
            continue
        x = _reduced_along(np.moveaxis(x, place + 2, 0), axis, reduce, neutral, place + 2)
    return x


def _reduced_along(x: Array, axis: Axis, reduce: np.ufunc, neutral: float, place: int) -> Array:
    """The windows along the first dimension; the result has it at `place`."""
    whole, parts = _read(x, axis)
    if len(whole) > 1:  # one pass over memory instead of three
        result = reduce(whole.pop(), whole.pop())
    else:
        result = np.full_like(x, neutral, shape=(axis.count, *x.shape[1:]))
    for data in whole:
        reduce(result, data, out=result)
    for first, data in parts:
        mine = result[first : first + len(data)]
        reduce(mine, data, out=mine)
    return np.moveaxis(result, 0, place)


def _read(x: Array, axis: Axis) -> tuple[list[Array], list[tuple[int, Array]]]:
    """What windows along the first dimension read at each of their places: that for all windows,
    and that for some of them, with the first of these."""
    whole: list[Array] = []
    parts: list[tuple[int, Array]] = []
    for at in range(axis.kernel):
        start = at * axis.dilation - axis.begin
        first = max(0, -(start // axis.stride))
        count = min(axis.count, -(-(axis.size - start) // axis.stride)) - first
        if count == axis.count:
            whole.append(x[start :: axis.stride][:count])
        elif count > 0:
            parts.append((first, x[start + first * axis.stride :: axis.stride][:count]))
    return whole, parts


OPS = (MaxPool, AveragePool, GlobalAveragePool, GlobalMaxPool)
