"""Matrix products of `f32`, by oneDNN."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.interpreter.products import matmul
from byoc_mlir.onednn.gemm import sgemm
from byoc_mlir.tensors import Array, aligned_empty


def _gemm(a: Array, b: Array, c: Array | None = None, **attributes: Any) -> Array:
    """Computes ONNX's Gemm since opset 7."""
    alpha, beta = float(attributes["alpha"]), float(attributes["beta"])
    a = a.T if attributes["transA"] else a
    b = b.T if attributes["transB"] else b
    if a.shape[1] != b.shape[0]:
        raise NotInterpretedError(f"matrices of {a.shape} and {b.shape} have no product")
    result = aligned_empty((a.shape[0], b.shape[1]), np.float32)
    if c is None:
        sgemm(a, b, result, alpha=alpha)
    else:
        result[...] = c
        sgemm(a, b, result, alpha=alpha, beta=beta)
    return result


OPS: Mapping[str, Callable[..., Any]] = {"Gemm": _gemm, "MatMul": matmul}
"""Implementations by their names in ONNX."""
