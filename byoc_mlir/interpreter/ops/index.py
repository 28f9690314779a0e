"""Ops that read or write elements at the indices in a tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.numpy_ops import movement
from byoc_mlir.numpy_ops.detection import non_max_suppression
from byoc_mlir.tensors import Array


def _gather(x: Array, indices: Array, axis: int = 0) -> Array:
    return x.take(indices, axis)


def _gather_elements(x: Array, indices: Array, axis: int = 0) -> Array:
    _check_ranks(x, indices)
    return movement.gather_elements(x, indices, axis)


def _gather_nd(x: Array, indices: Array, batch_dims: int = 0) -> Array:
    if x.shape[:batch_dims] != indices.shape[:-1][:batch_dims]:
        raise NotInterpretedError("batches of data that are not those of the indices")
    return movement.gather_nd(x, indices, batch_dims)


def _scatter_elements(
    x: Array, indices: Array, updates: Array, axis: int = 0, reduction: str = "none"
) -> Array:
    _check_ranks(x, indices)
    _check_updates(updates, indices.shape)
    return movement.scatter_elements(x, indices, updates, axis, reduction)


def _scatter_nd(x: Array, indices: Array, updates: Array, reduction: str = "none") -> Array:
    _check_updates(updates, (*indices.shape[:-1], *x.shape[indices.shape[-1] :]))
    return movement.scatter_nd(x, indices, updates, reduction)


def _check_ranks(x: Array, indices: Array) -> None:
    if x.ndim != indices.ndim or not x.ndim:
        raise NotInterpretedError("indices of another rank than the data")


def _check_updates(updates: Array, shape: tuple[int, ...]) -> None:
    if updates.shape != shape:
        raise NotInterpretedError("updates that are not of the shape of the places")


def _topk(x: Array, k: Any, axis: int = -1, largest: int = 1) -> tuple[Array, Array]:
    count = int(np.asarray(k).reshape(()))
    if not x.ndim or not 0 <= count <= x.shape[axis]:
        raise NotInterpretedError("more elements than there are")
    return movement.topk(x, count, axis, bool(largest))


def _nonzero(x: Array) -> Array:
    return np.array(np.nonzero(x), np.int64)


def _non_max_suppression(
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    overlap: Array | None = None,
    least: Array | None = None,
    center_point_box: int = 0,
) -> Array:
    threshold = np.float32(_number(overlap, 0.0))
    return non_max_suppression(
        *(boxes, scores, int(_number(most, 0)), threshold, _number(least, None)),
        centred=bool(center_point_box),
    )


def _number(tensor: Array | None, absent: Any) -> Any:
    return tensor.reshape(-1)[0] if tensor is not None and tensor.size else absent


OPS: Mapping[str, Callable[..., Any]] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonMaxSuppression": _non_max_suppression,
    "NonZero": _nonzero,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TopK": _topk,
}
"""Implementations by their names in ONNX."""
