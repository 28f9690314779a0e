"""Evaluation of matmuls with block-quantised weights; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from byoc_mlir.dialects.relay import blockwise as relay
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.numpy_ops.blockwise import dequantised
from byoc_mlir.tensors import Array


def _blockwise_dense(
    op: relay.BlockwiseDenseOp, data: Array, codes: Array, scales: Array, zero_points: Array
) -> Array:
    weight = dequantised(codes, scales, zero_points, op.bits.value.data)
    return data @ weight[:, : data.shape[-1]].T


FUNCTIONS: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.BlockwiseDenseOp: _blockwise_dense
}
