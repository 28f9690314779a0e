"""Numpy semantics of the ops on images; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from byoc_mlir.dialects.relay import image as relay
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.tensors import Array


def rounded_to(values: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers as another type; integers are rounded and saturate."""
    if dtype.kind not in "iu":
        return values.astype(dtype)
    info = ml_dtypes.iinfo(dtype)
    return np.clip(np.round(values), info.min, info.max).astype(dtype)


def _resize(op: relay.ResizeOp, data: Array) -> Array:
    nearest = op.method.data == "nearest"
    result = data if nearest else data.astype(np.float64)
    for axis, taps in op.resized_axes():
        gathered = np.take(result, taps.positions, axis)
        if nearest:
            result = gathered.squeeze(axis + 1)
        else:
            weights = taps.weights.reshape(*taps.weights.shape, *[1] * (data.ndim - axis - 1))
            result = (gathered * weights).sum(axis + 1)
        outside = taps.outside.reshape(-1, *[1] * (data.ndim - axis - 1))
        if outside.any():
            value = result.dtype.type(op.extrapolation_value.value.data)
            result = np.where(outside, value, result)
    return rounded_to(result, data.dtype)


IMAGE: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {relay.ResizeOp: _resize}
