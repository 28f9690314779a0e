"""What detectors end with."""

from __future__ import annotations

from typing import Any

import numpy as np

from byoc_mlir.eager.ops.op import Op
from byoc_mlir.tensors import Array


class NonMaxSuppression(Op):
    def _run(
        self,
        boxes: Array,
        scores: Array,
        most: Array | None = None,
        overlap: Array | None = None,
        least: Array | None = None,
        center_point_box: int = 0,
    ) -> tuple[Array]:
        limit = max(_number(most, 0), 0)
        threshold = np.float32(_number(overlap, 0.0))
        floor = _number(least, None)
        found: list[tuple[int, int, int]] = []
        for batch, of_classes in enumerate(scores if limit else ()):
            corners = _corners(boxes[batch], bool(center_point_box))
            for category, values in enumerate(of_classes):
                able = np.arange(values.size) if floor is None else np.flatnonzero(values > floor)
                order = able[np.argsort(-values[able], kind="stable")]
                kept = _kept(corners[:, order], limit, threshold)
                found.extend((batch, category, int(order[number])) for number in kept)
        return (np.array(found, np.int64).reshape(-1, 3),)


def _number(tensor: Array | None, absent: Any) -> Any:
    return tensor.reshape(-1)[0] if tensor is not None and tensor.size else absent


def _corners(boxes: Array, have_centres: bool) -> Array:
    """Rows of the lesser and the larger places of each axis of boxes."""
    if have_centres:
        halves = boxes[:, 2:] / 2
        low, high = boxes[:, :2] - halves, boxes[:, :2] + halves
    else:
        low = np.minimum(boxes[:, :2], boxes[:, 2:])
        high = np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, high], axis=1).T


def _kept(corners: Array, limit: int, threshold: Any) -> list[int]:
    """The boxes, in their order, that none before them that is kept overlaps too much."""
    kept: list[int] = []
    for first in range(0, corners.shape[1], _BLOCK):
        numbers = np.arange(first, min(first + _BLOCK, corners.shape[1]))
        if kept:
            beside = _overlap(corners[:, kept], corners[:, numbers], threshold)
            numbers = numbers[~beside.any(axis=0)]
        some = corners[:, numbers]
        is_free, are_apart = np.ones(len(numbers), bool), ~_overlap(some, some, threshold)
        for place, number in enumerate(numbers.tolist()):
            if not is_free[place]:
                continue
            kept.append(number)
            if len(kept) == limit:
                return kept
            is_free &= are_apart[place]
    return kept


_BLOCK = 32
"""Boxes that are compared with each other at a time: about as many as detectors keep of a class."""


def _overlap(one: Array, other: Array, threshold: Any) -> Array:
    """Whether the shared part of two boxes is more than a share of what both cover."""
    low0, low1, high0, high1 = one[:, :, None]
    shared = np.minimum(high0, other[2]) - np.maximum(low0, other[0])
    beside = np.minimum(high1, other[3]) - np.maximum(low1, other[1])
    is_shared = (shared > 0) & (beside > 0)
    shared *= beside
    area, area_of_other = _area(one)[:, None], _area(other)
    union = area + area_of_other - shared
    is_shared &= (shared > 0) & (union > 0) & (area > 0) & (area_of_other > 0)
    return is_shared & (shared / union > threshold)


def _area(corners: Array) -> Array:
    return (corners[2] - corners[0]) * (corners[3] - corners[1])


OPS = (NonMaxSuppression,)
