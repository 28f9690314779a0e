"""Matmuls of `f32` without a primitive for their sizes."""

from __future__ import annotations

import numpy as np

from byoc_mlir.onednn.engine import check_status, engine
from byoc_mlir.runtime.system.memory import address_of
from byoc_mlir.tensors import Array

_F32_BYTES = 4


def sgemm(a: Array, b: Array, c: Array, *, alpha: float = 1.0, beta: float = 0.0) -> None:
    """Computes c = alpha a b + beta c for `f32` matrices.

    Args:
        a, b: of any strides; copied if neither rows nor columns are contiguous.
        c: its rows are contiguous; not read if beta is 0.

    Raises:
        ValueError: the types or shapes are wrong.
    """
    (rows, inner), columns = a.shape, b.shape[1]
    if not a.dtype == b.dtype == c.dtype == np.float32:
        raise ValueError(f"{a.dtype} and {b.dtype} to {c.dtype}, accepted is float32")
    if b.shape[0] != inner or c.shape != (rows, columns) or not _has_contiguous_rows(c):
        raise ValueError(f"the matmul of {a.shape} and {b.shape} does not fit {c.shape}")
    if not rows or not columns:
        return
    if not inner:
        c[...] = beta * c if beta else 0
        return
    a_order, a, a_step = _operand(a)
    b_order, b, b_step = _operand(b)
    status = engine().sgemm(
        *(a_order, b_order, rows, columns, inner, alpha),
        *(address_of(a), a_step, address_of(b), b_step),
        *(beta, address_of(c), _step(c)),
    )
    check_status("dnnl_sgemm", status)


def _operand(matrix: Array) -> tuple[bytes, Array, int]:
    """Returns "N" (or "T" for column-major), the matrix, and its leading dimension."""
    if _has_contiguous_rows(matrix):
        return b"N", matrix, _step(matrix)
    if _has_contiguous_rows(matrix.T):
        return b"T", matrix, _step(matrix.T)
    matrix = np.ascontiguousarray(matrix)
    return b"N", matrix, _step(matrix)


def _has_contiguous_rows(matrix: Array) -> bool:
    rows, columns = matrix.shape
    between, beside = matrix.strides
    is_dense = beside == _F32_BYTES or columns == 1
    return is_dense and (
        rows == 1 or (between >= columns * _F32_BYTES and between % _F32_BYTES == 0)
    )


def _step(matrix: Array) -> int:
    """Returns the leading dimension; for a single row, its stride has no meaning."""
    rows, columns = matrix.shape
    return columns if rows == 1 else matrix.strides[0] // _F32_BYTES
