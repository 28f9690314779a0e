"""Evaluation of matmuls with block-quantised weights; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from byoc_mlir.dialects.relay import blockwise as relay
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.numpy_ops.blockwise import unpacked
from byoc_mlir.tensors import Array


def _blockwise_dense(
    op: relay.BlockwiseDenseOp, data: Array, codes: Array, scales: Array, zero_points: Array
) -> Array:
    numbers = unpacked(codes, op.bits.value.data).astype(data.dtype)
    weight = (numbers - zero_points[..., None]) * scales[..., None]
    return data @ weight.reshape(len(codes), -1)[:, : data.shape[-1]].T


FUNCTIONS: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.BlockwiseDenseOp: _blockwise_dense
}
