"""Matrix products for all ops of the interpreter tier."""

from __future__ import annotations

import numpy as np

from byoc_mlir.onednn.gemm import sgemm
from byoc_mlir.tensors import Array, aligned_empty

_SMALL, _SMALL_VECTOR = 1 << 18, 1 << 13
"""Maximum MACs, for a matrix and for a vector, of products that NumPy computes. OpenBLAS uses no
other threads up to the first number, and NumPy's loop over a batch is faster than separate
calls."""


def matmul(a: Array, b: Array) -> Array:
    """Computes `np.matmul(a, b)`; for `f32` with oneDNN, on its current number of threads."""
    if not a.dtype == b.dtype == np.float32 or not a.ndim or not b.ndim:
        return np.matmul(a, b)
    left, right = np.atleast_2d(a), b if b.ndim > 1 else b[:, np.newaxis]
    lines, inner, columns = left.shape[-2], left.shape[-1], right.shape[-1]
    if lines * inner * columns <= (_SMALL if min(lines, columns) > 1 else _SMALL_VECTOR):
        return np.matmul(a, b)
    result = _batched(left, right)
    if a.ndim == 1:
        result = result[..., 0, :]
    return result if b.ndim > 1 else result[..., 0]


def _batched(a: Array, b: Array) -> Array:
    lines, columns = a.shape[-2], b.shape[-1]
    if b.ndim == 2 and (a.ndim == 2 or a.flags.c_contiguous):
        result = aligned_empty((*a.shape[:-1], columns), np.float32)
        sgemm(a.reshape(-1, a.shape[-1]), b, result.reshape(-1, columns))
        return result
    batch = a.shape[:-2]
    if b.shape[:-2] != batch:
        batch = np.broadcast_shapes(batch, b.shape[:-2])
        a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
        b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    result = aligned_empty((*batch, lines, columns), np.float32)
    for place in np.ndindex(batch):
        sgemm(a[place], b[place], result[place])
    return result
