"""Non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byoc_mlir.tensors import Array


def non_max_suppression(
    boxes: Array, scores: Array, most: int, threshold: Any, floor: Any, *, centred: bool
) -> Array:
    """Returns image, class and index of the boxes that are kept, best first: `[boxes, 3]`.

    Args:
        boxes: corners, or centres and sizes, `[images, boxes, 4]`.
        scores: `[images, classes, boxes]`; a box with a score of NaN is not kept.
        most: the maximum number of boxes to keep of an image and class.
        threshold: the maximum overlap of two kept boxes (intersection over union).
        floor: the score below which boxes are not kept; `None` for no limit.
        centred: true if boxes are centres and sizes.
    """
    found: list[tuple[int, int, int]] = []
    for image, of_classes in enumerate(scores if most > 0 and scores.size else ()):
        corners = _corners(boxes[image], centred)
        orders = [_order(values, floor) for values in of_classes]
        of_first = _apart_at_first(corners, orders, threshold)
        for category, (order, apart) in enumerate(zip(orders, of_first, strict=True)):
            kept = _kept(corners, order, apart, most, threshold)
            found.extend((image, category, number) for number in kept)
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(boxes: Array, centred: bool) -> Array:
    """Returns rows of the lower and the upper coordinates of boxes along each axis."""
    if centred:
        halves = boxes[:, 2:] / 2
        low, high = boxes[:, :2] - halves, boxes[:, :2] + halves
    else:
        low = np.minimum(boxes[:, :2], boxes[:, 2:])
        high = np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, high], axis=1).T


def _order(scores: Array, floor: Any) -> Array:
    """Returns the boxes with scores above the floor, the largest first."""
    able = np.flatnonzero(~np.isnan(scores) if floor is None else scores > floor)
    return able[np.argsort(-scores[able], kind="stable")]


_BLOCK = 32
"""Number of boxes compared at a time: about as many as detectors keep of a class."""


def _apart_at_first(corners: Array, orders: Sequence[Array], threshold: Any) -> Array:
    """Returns a mask `[classes, block, block]` of pairs of first boxes that do not overlap too
    much.

    It covers all classes at once, since most comparisons are among so few boxes.
    """
    places = np.zeros((len(orders), _BLOCK), np.int64)
    for of_class, order in zip(places, orders, strict=True):
        of_class[: len(order)] = order[:_BLOCK]
    some = corners[:, places]
    return ~_overlap(some, some, threshold)


def _kept(corners: Array, order: Array, apart: Array, limit: int, threshold: Any) -> list[int]:
    """Returns the boxes that overlap no box kept before them too much, in order.

    Args:
        apart: mask of pairs of first boxes that do not overlap too much.
    """
    kept: list[int] = []
    for first in range(0, len(order), _BLOCK):
        boxes = order[first : first + _BLOCK]
        if kept:
            beside = _overlap(corners[:, kept], corners[:, boxes], threshold)
            boxes = boxes[~beside.any(axis=0)]
            some = corners[:, boxes]
            apart = ~_overlap(some, some, threshold)
        is_free = np.ones(len(boxes), bool)
        for place, box in enumerate(boxes.tolist()):
            if not is_free[place]:
                continue
            kept.append(box)
            if len(kept) == limit:
                return kept
            is_free &= apart[place, : len(boxes)]
    return kept


def _overlap(one: Array, other: Array, threshold: Any) -> Array:
    """True if the intersection over union of two boxes exceeds a threshold.

    Args:
        one, other: corners, `[4, ..., boxes]`.

    Returns:
        `[..., boxes of one, boxes of other]`
    """
    low0, low1, high0, high1 = one[..., None]
    others = other[..., None, :]
    shared = np.minimum(high0, others[2]) - np.maximum(low0, others[0])
    beside = np.minimum(high1, others[3]) - np.maximum(low1, others[1])
    is_shared = (shared > 0) & (beside > 0)
    shared *= beside
    area, area_of_other = _area(one)[..., None], _area(others)
    union = area + area_of_other - shared
    is_shared &= (shared > 0) & (union > 0) & (area > 0) & (area_of_other > 0)
    return is_shared & (shared / union > threshold)


def _area(corners: Array) -> Array:
    return (corners[2] - corners[0]) * (corners[3] - corners[1])
