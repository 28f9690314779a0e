"""Products of matrices, for all ops that have some."""

from __future__ import annotations

import numpy as np

from byoc_mlir.onednn.gemm import sgemm
from byoc_mlir.tensors import Array, aligned_empty

_SMALL, _SMALL_VECTOR = 1 << 16, 1 << 13
"""Multiplications, with matrices and with a vector, for which NumPy takes no other threads; it
loops over many such products sooner than calls are made."""


def matmul(a: Array, b: Array) -> Array:
    """`np.matmul(a, b)`; of `f32` on as many threads as are set for oneDNN."""
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
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = aligned_empty((*batch, lines, columns), np.float32)
    a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
    for place in np.ndindex(batch):
        sgemm(a[place], b[place], result[place])
    return result
