"""Codes of fewer than 8 bits in bytes, and weights that have such codes in blocks."""

from __future__ import annotations

from functools import cache

import numpy as np

from byoc_mlir.tensors import Array


def unpacked(codes: Array, bits: int) -> Array:
    """Returns the codes that the bytes of the last dimension hold, one code per byte; the low bits
    come first.
    """
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (codes[..., None] >> shifts) & np.uint8(2**bits - 1)
    return parts.reshape(*codes.shape[:-1], -1)


def packed(codes: Array, bits: int) -> Array:
    """Packs codes, one per byte, along the last dimension; inverse of `unpacked`."""
    count = 8 // bits
    padded = np.pad(codes, [*[(0, 0)] * (codes.ndim - 1), (0, -codes.shape[-1] % count)])
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(padded.reshape(*codes.shape[:-1], -1, count) << shifts, -1)


def dequantised(codes: Array, scales: Array, zero_points: Array, bits: int) -> Array:
    """Returns weights `(code - zero point) * scale`, `[rows, blocks * block]`.

    Args:
        codes: packed codes, `[rows, blocks, bytes]`.
        scales: one for each block, `[rows, blocks]`.
        zero_points: like `scales`, or a single one.
    """
    table = _codes_of_bytes(bits)
    if zero_points.size == 1:
        table = table - zero_points.reshape(())
    rows, blocks, size = codes.shape
    weights = table.take(codes, axis=0, mode="clip").reshape(rows, blocks, size * 8 // bits)
    if zero_points.size > 1:
        weights -= zero_points[..., None]
    weights *= scales[..., None]
    return weights.reshape(rows, blocks * weights.shape[2])


@cache
def _codes_of_bytes(bits: int) -> Array:
    """Returns the codes of each byte, as a row of `f32`: one access returns all codes of a byte."""
    return unpacked(np.arange(256, dtype=np.uint8)[:, None], bits).astype(np.float32)
