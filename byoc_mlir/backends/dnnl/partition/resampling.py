"""Check that a resize samples like oneDNN: each result is sampled at the centre of its pixel."""

from __future__ import annotations

import numpy as np

from byoc_mlir.dialects.relay.resampling import Taps
from byoc_mlir.tensors import Array

_TOLERANCE = 1e-6


def is_between_centres(taps: Taps, size: int, method: str) -> bool:
    """True if an axis of `size` elements is resized like oneDNN's `nearest` or `linear`."""
    new_size = len(taps.positions)
    centres = (np.arange(new_size) + 0.5) * size / new_size - 0.5
    expected = np.zeros((new_size, size))
    rows = np.arange(new_size)
    if method == "nearest":
        expected[rows, np.floor(centres + 0.5).astype(int)] = 1.0
    else:
        low = np.maximum(np.floor(centres), 0).astype(int)
        high = np.minimum(np.ceil(centres), size - 1).astype(int)
        part = np.abs(centres - low)
        np.add.at(expected, (rows, low), 1.0 - part)
        np.add.at(expected, (rows, high), part)
    return not taps.outside.any() and bool(
        np.all(np.abs(_matrix(taps, size) - expected) < _TOLERANCE)
    )


def _matrix(taps: Taps, size: int) -> Array:
    """Returns the weight of every element, `[new size, size]`."""
    matrix = np.zeros((len(taps.positions), size))
    rows = np.broadcast_to(np.arange(len(taps.positions))[:, None], taps.positions.shape)
    np.add.at(matrix, (rows, taps.positions.astype(int)), taps.weights)
    return matrix
