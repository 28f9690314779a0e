"""Numpy semantics of the ops that read or write at computed places; see `evaluate`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byoc_mlir.dialects.relay import index as relay
from byoc_mlir.dialects.relay.base import RelayOp, one_size
from byoc_mlir.dialects.relay.evaluate.elementwise import widened
from byoc_mlir.tensors import Array

_COMBINE: dict[str, Any] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
}


def _inside(indices: Array, size: int | Array) -> Array:
    """Indices from the front, clamped."""
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + size, wide), 0, np.maximum(np.asarray(size) - 1, 0))


def _take(op: relay.TakeOp, data: Array, indices: Array) -> Array:
    axis = op.positive_axis
    return np.take(data, _inside(indices, data.shape[axis]), axis)


def _beside(indices: Array, axis: int, size: int) -> tuple[Array, ...]:
    """Coordinates that are `indices` along `axis` and the own place elsewhere."""
    places = list(np.indices(indices.shape))
    places[axis] = _inside(indices, size)
    return tuple(places)


def _gather(op: relay.GatherOp, data: Array, indices: Array) -> Array:
    axis = op.positive_axis
    return data[_beside(indices, axis, data.shape[axis])]


def _gather_nd(op: relay.GatherNdOp, data: Array, indices: Array) -> Array:
    batch, depth = op.batch_dims.value.data, indices.shape[-1]
    sizes = np.asarray(data.shape[batch : batch + depth], np.int64)
    places = _inside(indices, sizes)
    leading = np.indices(indices.shape[:-1])[:batch]
    return data[(*leading, *np.moveaxis(places, -1, 0))]


def _scatter(op: relay.ScatterOp, data: Array, places: tuple[Array, ...], updates: Array) -> Array:
    result = data.copy()
    if op.reduction.data == "update":
        result[places] = updates
    else:
        _COMBINE[op.reduction.data].at(result, places, updates)
    return result


def _scatter_elements(
    op: relay.ScatterElementsOp, data: Array, indices: Array, updates: Array
) -> Array:
    axis = op.positive_axis
    return _scatter(op, data, _beside(indices, axis, data.shape[axis]), updates)


def _scatter_nd(op: relay.ScatterNdOp, data: Array, indices: Array, updates: Array) -> Array:
    sizes = np.asarray(data.shape[: indices.shape[-1]], np.int64)
    places = tuple(np.moveaxis(_inside(indices, sizes), -1, 0))
    return _scatter(op, data, places, updates)


def _update_slice(op: relay.UpdateSliceOp, data: Array, update: Array, starts: Array) -> Array:
    axis = op.positive_axis
    result, size = np.moveaxis(data.copy(), axis, 1), update.shape[axis]
    for entry, new, start in zip(result, np.moveaxis(update, axis, 1), starts, strict=True):
        if op.is_circular.value.data:
            entry[(start + np.arange(size)) % len(entry)] = new
            continue
        begin = min(max(int(start), 0), len(entry) - size)
        entry[begin : begin + size] = new
    return np.ascontiguousarray(np.moveaxis(result, 1, axis))


def _running(function: Callable[..., Any], start: float) -> Callable[..., Array]:
    def apply(op: relay.ScanOp, data: Array) -> Array:
        axis = op.positive_axis
        ordered = np.flip(data, axis) if op.reverse.value.data else data
        result = function(widened(ordered), axis=axis).astype(data.dtype)
        if op.exclusive.value.data:
            result = np.roll(result, 1, axis)
            result[(slice(None),) * axis + (slice(0, 1),)] = start
        return np.flip(result, axis) if op.reverse.value.data else result

    return apply


def _topk(op: relay.TopkOp, data: Array) -> Sequence[Array]:
    axis, k = op.positive_axis, operator.index(one_size(op.k))
    if op.is_ascend.value.data:
        order = np.argsort(data, axis, kind="stable")
    else:  # stable, so that equal values keep their order
        flipped = np.argsort(np.flip(data, axis), axis, kind="stable")
        order = data.shape[axis] - 1 - np.flip(flipped, axis)
    indices = np.take(order, range(k), axis).astype(np.int64)
    return np.take_along_axis(data, indices, axis), indices


INDEX: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.CumprodOp: _running(np.cumprod, 1),
    relay.CumsumOp: _running(np.cumsum, 0),
    relay.GatherNdOp: _gather_nd,
    relay.GatherOp: _gather,
    relay.ScatterElementsOp: _scatter_elements,
    relay.ScatterNdOp: _scatter_nd,
    relay.UpdateSliceOp: _update_slice,
    relay.TakeOp: _take,
    relay.TopkOp: _topk,
}
