"""Codes of fewer than 8 bits in bytes."""

from __future__ import annotations

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
