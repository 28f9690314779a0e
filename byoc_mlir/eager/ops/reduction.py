"""Reductions over axes, which are an attribute or an operand, and running sums."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from byoc_mlir.eager.ops.op import Op, axis_of
from byoc_mlir.tensors import Array


class _Reduction(Op):
    def _run(
        self, x: Array, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> tuple[Array]:
        given = () if axes is None else tuple(int(axis) for axis in axes)
        if not given and noop_with_empty_axes:
            return (x,)
        return (self.reduced(x, given or tuple(range(x.ndim)), bool(keepdims)),)

    @abstractmethod
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        """What is left of some axes."""


class ReduceSum(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return np.add.reduce(x, axes, x.dtype, keepdims=keepdims)


class ReduceProd(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return np.multiply.reduce(x, axes, x.dtype, keepdims=keepdims)


class ReduceMean(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        count = prod(x.shape[axis] for axis in axes)
        total = np.add.reduce(x, axes, x.dtype, keepdims=keepdims)
        return np.divide(total, x.dtype.type(count))


class ReduceMax(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return np.maximum.reduce(x, axes, keepdims=keepdims, **_start(x, "min", -np.inf))


class ReduceMin(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return np.minimum.reduce(x, axes, keepdims=keepdims, **_start(x, "max", np.inf))


class ReduceSumSquare(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return np.add.reduce(x * x, axes, x.dtype, keepdims=keepdims)


class ReduceL1(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return np.add.reduce(np.abs(x), axes, x.dtype, keepdims=keepdims)


class ReduceL2(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return np.sqrt(np.add.reduce(x * x, axes, x.dtype, keepdims=keepdims))


class ReduceLogSum(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        return np.log(np.add.reduce(x, axes, x.dtype, keepdims=keepdims))


class ReduceLogSumExp(_Reduction):
    def reduced(self, x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        largest = np.maximum.reduce(x, axes, keepdims=True, initial=-np.inf)
        largest = np.where(np.isfinite(largest), largest, x.dtype.type(0))
        total = np.log(np.add.reduce(np.exp(x - largest), axes, x.dtype, keepdims=True)) + largest
        return total if keepdims else total.squeeze(axes)


class _Place(Op):
    """Where the first, or the last, of the extreme elements of an axis is."""

    def _run(self, x: Array, axis: int, keepdims: int, select_last_index: int = 0) -> tuple[Array]:
        if not select_last_index:
            return (self.place(x, axis, bool(keepdims)),)
        return (x.shape[axis] - 1 - self.place(np.flip(x, axis), axis, bool(keepdims)),)

    @abstractmethod
    def place(self, x: Array, axis: int, keepdims: bool) -> Array:
        """That of the first one."""


class ArgMax(_Place):
    def place(self, x: Array, axis: int, keepdims: bool) -> Array:
        return np.argmax(x, axis, keepdims=keepdims)


class ArgMin(_Place):
    def place(self, x: Array, axis: int, keepdims: bool) -> Array:
        return np.argmin(x, axis, keepdims=keepdims)


class CumSum(Op):
    def _run(self, x: Array, axis: Array, exclusive: int, reverse: int) -> tuple[Array]:
        place = axis_of(int(axis.reshape(())), x.ndim)
        data = np.flip(x, place) if reverse else x
        sums = np.cumsum(data, place, x.dtype)
        if exclusive:
            sums = np.roll(sums, 1, place)
            sums[(slice(None),) * place + (slice(1),)] = 0
        return (np.flip(sums, place) if reverse else sums,)


def _start(x: Array, end: str, of_floats: float) -> Mapping[str, Any]:
    """Where to start, for what has no elements: at an end of the type."""
    if x.size:
        return {}
    return {"initial": of_floats if x.dtype.kind == "f" else getattr(np.iinfo(x.dtype), end)}


OPS = (
    *(ReduceSum, ReduceProd, ReduceMean, ReduceMax, ReduceMin),
    *(ReduceSumSquare, ReduceL1, ReduceL2, ReduceLogSum, ReduceLogSumExp),
    *(ArgMax, ArgMin, CumSum),
)
