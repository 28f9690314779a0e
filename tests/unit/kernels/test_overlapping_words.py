"""Weights in packed 4-byte groups that overlap: nothing is lost, and no pair saturates."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from byoc_mlir.kernels.integer_gemm.overlapping import WORD, OverlappingWords

_GENERATOR = np.random.default_rng(0)
_SHAPES = [(3, 4, 1), (5, 5, 8), (9, 6, 3), (20, 7, 2), (4, 64, 16)]
_NORMAL = {shape: np.clip(_GENERATOR.normal(0, 40, shape), -128, 127) for shape in _SHAPES}
_WEIGHTS = [
    *(weights.astype(np.int8) for weights in _NORMAL.values()),
    *(_GENERATOR.integers(-128, 128, shape).astype(np.int8) for shape in _SHAPES),
    *(_GENERATOR.choice([-128, 0, 127], shape).astype(np.int8) for shape in _SHAPES),
    np.full((1, 21, 2), -128, np.int8),
]


@pytest.mark.parametrize("weights", _WEIGHTS, ids=lambda it: f"{it.shape}")
def test_no_weight_is_lost(weights: NDArray[np.int8]) -> None:
    words = OverlappingWords.of([weights])
    found = np.zeros(weights.shape, np.int32)
    for run in range(len(weights)):
        for word in range(words.begins[run], words.begins[run + 1]):
            place = words.places[word]
            assert 0 <= place <= weights.shape[1] - WORD
            found[run, place : place + WORD] += words.weights[word].T
    np.testing.assert_array_equal(found, weights)


@pytest.mark.parametrize("weights", _WEIGHTS, ids=lambda it: f"{it.shape}")
def test_no_pair_saturates(weights: NDArray[np.int8]) -> None:
    pairs = OverlappingWords.of([weights]).weights.reshape(-1, 2).astype(np.int32)
    ends = np.iinfo(np.int16)
    assert 255 * np.maximum(pairs, 0).sum(1).max() <= ends.max
    assert 255 * np.minimum(pairs, 0).sum(1).min() >= ends.min


def test_weights_that_need_not_overlap() -> None:
    words = OverlappingWords.of([np.full((2, 10, 3), 64, np.int8)])
    assert words.begins.tolist() == [0, 3, 6]
    assert words.places.tolist() == [0, 4, 6] * 2


def test_one_pair_too_much_moves_a_word() -> None:
    """Checks a weight that is split over both groups, since its pair in the first would
    saturate."""
    weights = np.array([1, 2, 100, 100, 3, 4, 5]).reshape(1, 7, 1)
    words = OverlappingWords.of([weights])
    assert words.places.tolist() == [0, 3]
    assert words.weights[:, 0].tolist() == [[1, 2, 100, 28], [72, 3, 4, 5]]
