"""Evaluation of ops that read or write at computed indices; see `evaluate`."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from byoc_mlir.dialects.relay import index as relay
from byoc_mlir.dialects.relay.base import RelayOp, one_size
from byoc_mlir.dialects.relay.evaluate.elementwise import Evaluator
from byoc_mlir.numpy_ops import movement
from byoc_mlir.tensors import Array


def _inside(indices: Array, size: int | Array) -> Array:
    """Returns indices counted from the front, and clamped to the dimension."""
    wide = indices.astype(np.int64)
    return np.clip(np.where(wide < 0, wide + size, wide), 0, np.maximum(np.asarray(size) - 1, 0))


def _take(op: relay.TakeOp, data: Array, indices: Array) -> Array:
    axis = op.positive_axis
    return data.take(_inside(indices, data.shape[axis]), axis)


def _gather(op: relay.GatherOp, data: Array, indices: Array) -> Array:
    axis = op.positive_axis
    return movement.gather_elements(data, _inside(indices, data.shape[axis]), axis)


def _gather_nd(op: relay.GatherNdOp, data: Array, indices: Array) -> Array:
    batch, depth = op.batch_dims.value.data, indices.shape[-1]
    sizes = np.asarray(data.shape[batch : batch + depth], np.int64)
    return movement.gather_nd(data, _inside(indices, sizes), batch)


def _scatter_elements(
    op: relay.ScatterElementsOp, data: Array, indices: Array, updates: Array
) -> Array:
    axis = op.positive_axis
    places = _inside(indices, data.shape[axis])
    return movement.scatter_elements(data, places, updates, axis, _reduction(op))


def _scatter_nd(op: relay.ScatterNdOp, data: Array, indices: Array, updates: Array) -> Array:
    sizes = np.asarray(data.shape[: indices.shape[-1]], np.int64)
    return movement.scatter_nd(data, _inside(indices, sizes), updates, _reduction(op))


def _reduction(op: relay.ScatterOp) -> str:
    return "none" if op.reduction.data == "update" else op.reduction.data


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


def _topk(op: relay.TopkOp, data: Array) -> Sequence[Array]:
    k, largest = operator.index(one_size(op.k)), not op.is_ascend.value.data
    return movement.topk(data, k, op.positive_axis, largest)


FUNCTIONS: dict[type[RelayOp], Evaluator] = {
    relay.GatherNdOp: _gather_nd,
    relay.GatherOp: _gather,
    relay.ScatterElementsOp: _scatter_elements,
    relay.ScatterNdOp: _scatter_nd,
    relay.UpdateSliceOp: _update_slice,
    relay.TakeOp: _take,
    relay.TopkOp: _topk,
}
