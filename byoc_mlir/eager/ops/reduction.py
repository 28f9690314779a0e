"""Reductions over axes, which are an attribute or an operand."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from byoc_mlir.eager.ops.op import Op
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


def _start(x: Array, end: str, of_floats: float) -> Mapping[str, Any]:
    """Where to start, for what has no elements: at an end of the type."""
    if x.size:
        return {}
    return {"initial": of_floats if x.dtype.kind == "f" else getattr(np.iinfo(x.dtype), end)}


OPS = (ReduceSum, ReduceProd, ReduceMean, ReduceMax, ReduceMin)
