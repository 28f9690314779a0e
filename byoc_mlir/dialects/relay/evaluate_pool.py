"""Numpy semantics of the pools that tell where the maximum was; see `evaluate`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.dialects.relay import pool as relay
from byoc_mlir.dialects.relay.base import RelayOp, ints, shape_of

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def _max_pool_with_argmax(op: relay.MaxPoolWithArgmaxOp, data: Array) -> Sequence[Array]:
    strides, padding, dilation = op.checked_window()
    sizes, shape = data.shape[2:], shape_of(op.output)
    plane = np.arange(np.prod(sizes)).reshape(sizes[::-1] if op.column_major.value.data else sizes)
    if op.column_major.value.data:
        plane = plane.transpose()
    planes = np.arange(shape[0] * shape[1]).reshape(*shape[:2]) * plane.size
    best, where = np.zeros(shape, data.dtype), np.zeros(shape, np.int64)
    for place in itertools.product(*(range(size) for size in shape[2:])):
        window: list[tuple[int, ...]] = []
        for tap in itertools.product(*(range(size) for size in ints(op.pool_size))):
            at = tuple(
                p * s - before + t * d
                for p, s, before, t, d in zip(place, strides, padding, tap, dilation, strict=False)
            )
            if all(0 <= i < size for i, size in zip(at, sizes, strict=True)):
                window.append(at)
        values = np.stack([data[(..., *at)] for at in window], -1)
        chosen = values.argmax(-1)
        best[(..., *place)] = np.take_along_axis(values, chosen[..., None], -1)[..., 0]
        where[(..., *place)] = planes + np.array([plane[at] for at in window])[chosen]
    return best, where


POOL: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.MaxPoolWithArgmax1DOp: _max_pool_with_argmax,
    relay.MaxPoolWithArgmax2DOp: _max_pool_with_argmax,
    relay.MaxPoolWithArgmax3DOp: _max_pool_with_argmax,
}
