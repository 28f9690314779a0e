"""Element types of what is computed: half precision is computed in f32 and rounded once per op."""

from __future__ import annotations

from typing import Any

import numpy as np

from byoc_mlir.tensors import Array


def widened(array: Array) -> Array:
    """Returns half precision as f32, everything else as it is."""
    is_half = array.dtype.itemsize <= 2 and array.dtype.kind not in "iub"
    return array.astype(np.float32) if is_half else array


def limit(number: float, dtype: np.dtype[Any]) -> Any:
    """Returns infinity and NaN as they are for floats; for integers an end of the range, and 0."""
    if np.isfinite(number) or dtype.kind not in "iub":
        return number
    if dtype.kind == "b":
        return number > 0
    if np.isnan(number):
        return 0
    return np.iinfo(dtype).max if number > 0 else np.iinfo(dtype).min
