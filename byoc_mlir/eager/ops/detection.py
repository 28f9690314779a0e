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
                order = np.argsort(-values, kind="stable")
                if floor is not None:
                    order = order[values[order] > floor]
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
    low0, low1, high0, high1 = corners
    areas = (high0 - low0) * (high1 - low1)
    left = np.arange(corners.shape[1])
    kept: list[int] = []
    while left.size and len(kept) < limit:
        first, left = int(left[0]), left[1:]
        kept.append(first)
        shared0 = np.minimum(high0[left], high0[first]) - np.maximum(low0[left], low0[first])
        shared1 = np.minimum(high1[left], high1[first]) - np.maximum(low1[left], low1[first])
        shared = np.maximum(shared0, 0) * np.maximum(shared1, 0)
        union = areas[left] + areas[first] - shared
        overlaps = (shared > 0) & (union > 0) & (areas[left] > 0) & (areas[first] > 0)
        left = left[~(overlaps & (shared / union > threshold))]
    return kept


OPS = (NonMaxSuppression,)
