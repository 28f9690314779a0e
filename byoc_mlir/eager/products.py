"""Products of matrices, for all ops that have some."""

from __future__ import annotations

import numpy as np

from byoc_mlir.tensors import Array


def matmul(a: Array, b: Array) -> Array:
    """The product of two `f32` arrays, as `np.matmul` has it."""
    return np.matmul(a, b)
