"""Evaluation of matmuls with block-quantised weights; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from byoc_mlir.dialects.relay import blockwise as relay
from byoc_mlir.dialects.relay.base import RelayOp
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


def _blockwise_dense(
    op: relay.BlockwiseDenseOp, data: Array, codes: Array, scales: Array, zero_points: Array
) -> Array:
    numbers = unpacked(codes, op.bits.value.data).astype(data.dtype)
    weight = (numbers - zero_points[..., None]) * scales[..., None]
    return data @ weight.reshape(len(codes), -1)[:, : data.shape[-1]].T


BLOCKWISE: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.BlockwiseDenseOp: _blockwise_dense
}
