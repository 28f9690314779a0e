"""Ops that move elements, where NumPy has no function of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from byoc_mlir.tensors import Array


def pad(x: Array, widths: Sequence[tuple[int, int]], mode: str, fill: Any = 0) -> Array:
    """Returns the array with elements around it, or without some where widths are negative."""
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
