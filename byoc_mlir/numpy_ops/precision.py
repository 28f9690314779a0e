"""Element types of computations: f16 and bf16 are computed in f32 and rounded once per op."""

from __future__ import annotations

from typing import Any

import numpy as np

from byoc_mlir.tensors import Array


def widened(array: Array) -> Array:
    """Returns f16 and bf16 as f32, other types as they are."""
    is_half = array.dtype.itemsize <= 2 and array.dtype.kind not in "iub"
    return array.astype(np.float32) if is_half else array


def limit(number: float, dtype: np.dtype[Any]) -> Any:
    """Returns infinity or NaN for floats; for integers the end of the range, or 0 for NaN."""
    if np.isfinite(number) or dtype.kind not in "iub":
        return number
    if dtype.kind == "b":
        return number > 0
    if np.isnan(number):
        return 0
    return np.iinfo(dtype).max if number > 0 else np.iinfo(dtype).min
