"""Means of floats, with which numpy warns where there is nothing to take the mean of."""

from __future__ import annotations

from byoc_mlir.tensors import Array


def mean_of(data: Array, axis: tuple[int, ...], keepdims: bool = False) -> Array:
    """The mean of floats along axes; not-a-number where these have no elements."""
    if data.size:
        return data.mean(axis, keepdims=keepdims)
    return data.sum(axis, keepdims=keepdims) / data.dtype.type(0)
