"""Weights of a few bits, quantised in blocks, which are dequantised some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.numpy_ops.blockwise import dequantised, unpacked
from byoc_mlir.onednn.gemm import sgemm
from byoc_mlir.tensors import Array, aligned_empty

_TILE = 128
"""Rows of a weight that are dequantised at a time: a few MB, most of which stay in the caches."""


def _matmul_nbits(
    data: Array,
    codes: Array,
    scales: Array,
    zero_points: Array | None = None,
    groups: Array | None = None,
    bias: Array | None = None,
    *,
    K: int,  # noqa: N803 - the attribute's name
    N: int,  # noqa: N803 - the attribute's name
    block_size: int,
    bits: int = 4,
) -> Array:
    """Computes a matmul in `f32`, which `accuracy_level` allows at all levels."""
    blocks = -(-K // block_size)
    if groups is not None and not np.array_equal(groups, np.arange(K) // block_size):
        raise NotInterpretedError("groups out of order")
    codes = codes.reshape(N, blocks, block_size * bits // 8)
    scales = scales.reshape(N, blocks)
    points = _zero_points(zero_points, bits, (N, blocks))
    right = data.reshape(-1, K).T
    product = aligned_empty((N, right.shape[1]), np.float32)
    for first in range(0, N, _TILE):
        some = slice(first, first + _TILE)
        tile_points = points[some] if points.size > 1 else points
        weights = dequantised(codes[some], scales[some], tile_points, bits)
        sgemm(weights[:, :K], right, product[some])
    result = np.ascontiguousarray(product.T).reshape(*data.shape[:-1], N)
    return result if bias is None else result + bias


def _zero_points(given: Array | None, bits: int, shape: tuple[int, int]) -> Array:
    """Returns the zero points of all blocks, or a single one if all have the same."""
    if given is None:
        return np.full((1, 1), 2 ** (bits - 1), np.float32)
    if given.dtype == np.uint8:
        given = unpacked(given.reshape(shape[0], -1), bits)[:, : shape[1]]
    return given.reshape(shape).astype(np.float32, copy=False)


def _gather_block_quantized(
    table: Array,
    indices: Array,
    scales: Array,
    zero_points: Array | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int,
    quantize_axis: int,
) -> Array:
    """Dequantises the gathered rows of a table."""
    if table.ndim != 2 or gather_axis not in (0, -2) or quantize_axis not in (1, -1):
        raise NotInterpretedError("a table that is not of rows")
    rows, width = len(table), table.shape[1] * 8 // bits
    blocks = -(-width // block_size)
    if width % block_size and blocks > 1:
        raise NotInterpretedError("a last block that is not full")
    points = _zero_points(zero_points, bits, (rows, blocks))
    places = indices.reshape(-1)
    found = dequantised(
        table.reshape(rows, blocks, -1).take(places, 0),
        scales.reshape(rows, blocks).take(places, 0),
        points.take(places, 0) if points.size > 1 else points,
        bits,
    )
    return found.reshape(*indices.shape, width)


OPS: Mapping[str, Callable[..., Any]] = {
    "com.microsoft.GatherBlockQuantized": _gather_block_quantized,
    "com.microsoft.MatMulNBits": _matmul_nbits,
}
"""Implementations by their names, as in `schemas.name_of`."""
