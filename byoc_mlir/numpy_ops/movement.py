"""Ops that move elements: gather, scatter, sort, pad.

Negative indices count from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byoc_mlir.tensors import Array


def gather_elements(x: Array, indices: Array, axis: int) -> Array:
    """Returns the elements at `indices` along an axis, as ONNX's GatherElements."""
    return x[_beside(indices, axis)]


def gather_nd(x: Array, indices: Array, batch_dims: int = 0) -> Array:
    """Returns slices of `x` at coordinates, which `indices` has along its last axis."""
    shape = indices.shape[:-1]
    grid = np.ogrid[tuple(slice(size) for size in shape)][:batch_dims]
    return x[(*grid, *np.moveaxis(indices, -1, 0))]


def scatter_elements(
    x: Array, indices: Array, updates: Array, axis: int, reduction: str = "none"
) -> Array:
    """Returns a copy with updates at `indices` along an axis, as ONNX's ScatterElements."""
    return _scattered(x, _beside(indices, axis), updates, reduction)


def scatter_nd(x: Array, indices: Array, updates: Array, reduction: str = "none") -> Array:
    """Returns a copy with updates at coordinates, which `indices` has along its last axis."""
    return _scattered(x, tuple(np.moveaxis(indices, -1, 0)), updates, reduction)


def _beside(indices: Array, axis: int) -> tuple[Any, ...]:
    places: list[Any] = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    places[axis] = indices
    return tuple(places)


def _scattered(x: Array, places: Any, updates: Array, reduction: str) -> Array:
    """Returns a copy with updates at `places`; of several for one place, the last one wins."""
    result = x.copy()
    if reduction == "none":
        result[places] = updates
    else:
        _REDUCTIONS[reduction].at(result, places, updates)
    return result


_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def topk(x: Array, k: int, axis: int, largest: bool) -> tuple[Array, Array]:
    """Returns the `k` largest or smallest elements along an axis in order, and their indices."""
    if largest:  # in reverse, so that of equal ones the first stays the first
        places = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis, "stable"), axis)
    else:
        places = np.argsort(x, axis, "stable")
    first = places.take(np.arange(k), axis)
    return np.take_along_axis(x, first, axis), first.astype(np.int64)


def pad(x: Array, widths: Sequence[tuple[int, int]], mode: str, fill: Any = 0) -> Array:
    """Returns the array with padding around it; negative widths crop it."""
    kept = x[
        tuple(
            slice(max(-before, 0), size - max(-behind, 0))
            for size, (before, behind) in zip(x.shape, widths, strict=True)
        )
    ]
    added = [(max(before, 0), max(behind, 0)) for before, behind in widths]
    sizes = [size + sum(pair) for size, pair in zip(kept.shape, added, strict=True)]
    if mode != "constant" and 0 not in sizes:
        how: Any = mode
        return np.pad(kept, added, how)
    result = np.full(sizes, fill, x.dtype)
    result[
        tuple(
            slice(before, before + size)
            for size, (before, _) in zip(kept.shape, added, strict=True)
        )
    ] = kept
    return result
