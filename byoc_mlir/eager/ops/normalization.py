"""Normalisations, some rows at a time, so that they are read from memory once."""

from __future__ import annotations

from math import prod

import numpy as np

from byoc_mlir.eager.ops.errors import NotEagerError
from byoc_mlir.eager.ops.op import Op, axis_of
from byoc_mlir.tensors import Array

_BLOCK = 1 << 15
"""Elements of the rows that are normalised at a time."""


def standardised(rows: Array, epsilon: float, scale: Array, bias: Array) -> Array:
    """Rows with mean 0 and variance 1, times a scale, plus a bias.

    Both are of one row for all, or a column with a number for each row.
    """
    count, width = rows.shape
    result = np.empty((count, width), np.float32)
    height = max(_BLOCK // max(width, 1), 1)
    for first in range(0, count, height):
        some = slice(first, first + height)
        moved = result[some]
        mean = np.einsum("rc->r", rows[some]) / np.float32(width)
        np.subtract(rows[some], mean[:, None], out=moved)
        variance = np.einsum("rc,rc->r", moved, moved)
        variance /= np.float32(width)
        variance += np.float32(epsilon)
        np.sqrt(variance, out=variance)
        moved /= variance[:, None]
        moved *= scale[some] if len(scale) > 1 else scale
        moved += bias[some] if len(bias) > 1 else bias
    return result


class LayerNormalization(Op):
    def _run(
        self,
        x: Array,
        scale: Array,
        bias: Array | None = None,
        axis: int = -1,
        epsilon: float = 1e-5,
        stash_type: int = 1,
    ) -> tuple[Array]:
        tail = x.shape[axis_of(axis, x.ndim) :]
        rows = x.reshape(prod(x.shape[: x.ndim - len(tail)]), prod(tail))
        given = np.zeros(tail, np.float32) if bias is None else bias
        scales, biases = (_row(each, tail) for each in (scale, given))
        return (standardised(rows, epsilon, scales, biases).reshape(x.shape),)


def _row(values: Array, shape: tuple[int, ...]) -> Array:
    whole = values if values.shape == shape else np.broadcast_to(values, shape)
    return whole.reshape(1, -1)


class InstanceNormalization(Op):
    def _run(self, x: Array, scale: Array, bias: Array, epsilon: float = 1e-5) -> tuple[Array]:
        if not x.size or scale.shape != x.shape[1:2] or bias.shape != scale.shape:
            raise NotEagerError("normalisation of nothing, or scales that are not of its channels")
        rows = x.reshape(x.shape[0] * x.shape[1], -1)
        scales, biases = (np.tile(each, x.shape[0])[:, None] for each in (scale, bias))
        return (standardised(rows, epsilon, scales, biases).reshape(x.shape),)


class BatchNormalization(Op):
    def _run(
        self,
        x: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        variance: Array,
        epsilon: float = 1e-5,
        **_: object,
    ) -> tuple[Array]:
        if x.ndim < 2 or any(each.shape != x.shape[1:2] for each in (scale, bias, mean, variance)):
            raise NotEagerError("statistics that are not those of channels")
        factor = scale / np.sqrt(variance + np.float32(epsilon))
        moved = bias - mean * factor
        result = np.empty(x.shape, np.float32)
        width = max(prod(x.shape[2:]), 1)
        height = max(_BLOCK // width, 1)
        column = (-1, *(1,) * (x.ndim - 2))
        for batch in range(len(x)):
            for first in range(0, x.shape[1], height):
                some = slice(first, first + height)
                out = result[batch, some]
                np.multiply(x[batch, some], factor[some].reshape(column), out=out)
                out += moved[some].reshape(column)
        return (result,)


OPS = (LayerNormalization, InstanceNormalization, BatchNormalization)
