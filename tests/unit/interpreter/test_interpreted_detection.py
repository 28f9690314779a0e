"""Suppression of overlapping boxes: the boxes of ONNX Runtime, in its order."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import check_node, integers, run_interpreted
from helpers.models import node_model

from byoc_mlir.tensors import Array

F32 = np.float32


def _boxes(rng: np.random.Generator, batch: int, count: int, *, has_centres: bool) -> Array:
    place, size = rng.uniform(0, 1, (batch, count, 2)), rng.uniform(0, 0.4, (batch, count, 2))
    if has_centres:
        return np.concatenate([place, size], axis=2).astype(F32)
    corners = np.stack([place - size, place + size], axis=2).astype(F32)
    swapped = rng.integers(0, 2, (batch, count, 1, 1)).astype(bool)
    return np.where(swapped, corners[:, :, ::-1], corners).reshape(batch, count, 4)


@pytest.mark.parametrize("has_centres", [False, True])
@pytest.mark.parametrize("count", [1, 7, 64, 65, 300])
@pytest.mark.parametrize("most", [1, 5, 1000])
@pytest.mark.parametrize("overlap", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("least", [None, 0.0, 0.6])
def test_random_boxes(
    has_centres: bool, count: int, most: int, overlap: float, least: float | None
) -> None:
    rng = np.random.default_rng(count)
    operands = [
        _boxes(rng, 2, count, has_centres=has_centres),
        rng.uniform(-0.2, 1, (2, 3, count)).astype(F32),
        integers(most),
        np.array([overlap], F32),
        None if least is None else np.array([least], F32),
    ]
    check_node("NonMaxSuppression", *operands, center_point_box=int(has_centres))


def test_of_equal_scores_the_first_is_first() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 3, (1, 2, 200)).astype(F32) / 2
    boxes = _boxes(rng, 1, 200, has_centres=False)
    check_node("NonMaxSuppression", boxes, scores, integers(50), np.array([0.2], F32))


def test_boxes_without_an_area() -> None:
    boxes = np.array([[[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]]], F32)
    scores = np.array([[[0.9, 0.8, 0.7, 0.6]]], F32)
    check_node("NonMaxSuppression", boxes, scores, integers(9), np.array([0.0], F32))


def test_boxes_that_touch() -> None:
    boxes = np.array([[[0, 0, 1, 1], [1, 0, 2, 1], [0, 1, 1, 2]]], F32)
    scores = np.array([[[0.9, 0.8, 0.7]]], F32)
    check_node("NonMaxSuppression", boxes, scores, integers(9), np.array([0.0], F32))


@pytest.mark.parametrize("operands", [(), (integers(0),), (integers(-3),)])
def test_none_are_asked_for(operands: tuple[Array, ...]) -> None:
    boxes, scores = np.ones((1, 2, 4), F32), np.ones((1, 1, 2), F32)
    check_node("NonMaxSuppression", boxes, scores, *operands)


def test_there_are_none() -> None:
    boxes, scores = np.ones((1, 0, 4), F32), np.ones((1, 1, 0), F32)
    model, feeds = node_model("NonMaxSuppression", [boxes, scores, integers(3)])
    found = run_interpreted(model, feeds)["y0"]
    assert found.shape == (0, 3)
    assert found.dtype == np.int64
