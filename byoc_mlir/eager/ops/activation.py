"""Activations, a block at a time, so that what is between two steps stays in the cache."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from byoc_mlir.eager.ops.op import Op, axis_of
from byoc_mlir.tensors import Array

_BLOCK = 1 << 14
"""Elements of a block: 64 KB of `f32`, and a second cache holds several."""


def by_blocks(step: Callable[[Array, Array], object], x: Array) -> Array:
    """The results of an element-wise function, which writes those of one array to another."""
    result = np.empty(x.shape, x.dtype)
    source, target = np.ravel(x), result.reshape(-1)
    for first in range(0, source.size, _BLOCK):
        step(source[first : first + _BLOCK], target[first : first + _BLOCK])
    return result


def sigmoid(x: Array, out: Array) -> None:
    """Writes `1 / (1 + exp(-x))`, which is 0 where the power overflows; `out` may be `x`."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


def erf(x: Array, out: Array) -> None:
    """Writes the error function of `f32`, 2e-7 off in the measure of the result.

    It is `tanh(x * p(x * x))` with a polynomial for `atanh(erf(x)) / x`, whose error counts the
    less the nearer the result is to one. From 3.95 on the result is one.
    """
    clipped = np.clip(x, -_ERF_END, _ERF_END)
    square = clipped * clipped
    np.multiply(square, _ERF[0], out=out)
    for coefficient in _ERF[1:-1]:
        np.add(out, coefficient, out=out)
        np.multiply(out, square, out=out)
    np.add(out, _ERF[-1], out=out)
    np.multiply(out, clipped, out=out)
    np.tanh(out, out=out)
    is_one = np.abs(clipped) == _ERF_END
    if is_one.any():  # the polynomial ends a bit below, which counts beside a large factor
        np.copysign(np.float32(1), clipped, out=out, where=is_one)


_ERF_END = np.float32(3.95)
_ERF = np.array(
    [
        -1.6370512366652468e-09,
        5.381341547512519e-08,
        -5.140032812890401e-07,
        -1.8666624922641025e-06,
        7.65043295677154e-05,
        -0.0006037003535882099,
        -0.0002021404558222484,
        0.1027713126700273,
        1.1283792023867183,
    ],
    np.float32,
)
"""Fitted by least squares, weighted until the largest error was the least."""


def _gelu(x: Array, out: Array) -> None:
    erf(x * np.float32(np.sqrt(0.5)), out)
    _halve(x, out)


def _gelu_by_tanh(x: Array, out: Array) -> None:
    np.multiply(x, x, out=out)
    np.multiply(out, np.float32(0.044715), out=out)
    np.add(out, 1, out=out)
    np.multiply(out, x, out=out)
    np.multiply(out, np.float32(np.sqrt(2 / np.pi)), out=out)
    np.tanh(out, out=out)
    _halve(x, out)


def _halve(x: Array, out: Array) -> None:
    """Writes `x * ((1 + out) / 2)`."""
    np.add(out, 1, out=out)
    np.multiply(out, np.float32(0.5), out=out)
    np.multiply(out, x, out=out)


def _hard_swish(x: Array, out: Array) -> None:
    np.multiply(x, np.float32(1 / 6), out=out)
    np.add(out, np.float32(0.5), out=out)
    np.clip(out, 0, 1, out=out)
    np.multiply(out, x, out=out)


class _Shares(Op):
    """A function of rows: those of one axis, and before opset 13 of it and all behind."""

    @staticmethod
    @abstractmethod
    def write(rows: Array, out: Array) -> None:
        """Writes the results of some rows."""

    def _run(self, x: Array, axis: int = -1) -> tuple[Array]:
        if not x.size:
            return (x,)
        if self.opset < 13:
            first = axis_of(axis, x.ndim)
            return (self._of_rows(x.reshape(prod(x.shape[:first]), -1)).reshape(x.shape),)
        if axis in (-1, x.ndim - 1):
            return (self._of_rows(x.reshape(-1, x.shape[-1] if x.ndim else 1)).reshape(x.shape),)
        moved = np.moveaxis(x, axis, -1)
        rows = self._of_rows(moved.reshape(-1, moved.shape[-1])).reshape(moved.shape)
        return (np.moveaxis(rows, -1, axis),)

    def _of_rows(self, rows: Array) -> Array:
        result = np.empty(rows.shape, rows.dtype)
        height = max(_BLOCK // rows.shape[1], 1)
        for first in range(0, len(rows), height):
            self.write(rows[first : first + height], result[first : first + height])
        return result


class Softmax(_Shares):
    @staticmethod
    def write(rows: Array, out: Array) -> None:
        np.subtract(rows, np.maximum.reduce(rows, axis=1, keepdims=True), out=out)
        np.exp(out, out=out)
        np.multiply(out, np.reciprocal(np.einsum("rc->r", out))[:, None], out=out)


class LogSoftmax(_Shares):
    @staticmethod
    def write(rows: Array, out: Array) -> None:
        np.subtract(rows, np.maximum.reduce(rows, axis=1, keepdims=True), out=out)
        np.subtract(out, np.log(np.einsum("rc->r", np.exp(out)))[:, None], out=out)


class Sigmoid(Op):
    def _run(self, x: Array) -> tuple[Array]:
        return (by_blocks(sigmoid, x),)


class Erf(Op):
    def _run(self, x: Array) -> tuple[Array]:
        return (by_blocks(erf, x),)


class Gelu(Op):
    def _run(self, x: Array, approximate: str = "none") -> tuple[Array]:
        return (by_blocks(_gelu if approximate == "none" else _gelu_by_tanh, x),)


class HardSwish(Op):
    def _run(self, x: Array) -> tuple[Array]:
        return (by_blocks(_hard_swish, x),)


class Relu(Op):
    def _run(self, x: Array) -> tuple[Any]:
        return (np.maximum(x, x.dtype.type(0)),)


OPS = (Softmax, LogSoftmax, Sigmoid, Erf, Gelu, HardSwish, Relu)
