"""Weights of a few bits in blocks, as language models have them."""

from __future__ import annotations

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import blockwise, nn
from byoc_mlir.dialects.relay.evaluate_blockwise import unpacked
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import Array, NodeRefused, Value

_F32 = np.dtype(np.float32)


@register_op(DOMAIN, "MatMulNBits")
def matmul_nbits(
    context: NodeContext,
    data: Value,
    weight: Value,
    scales: Value,
    zero_points: Value | None = None,
    g_idx: Value | None = None,
    bias: Value | None = None,
    *,
    K: int,  # noqa: N803 - the attribute's name
    N: int,  # noqa: N803 - the attribute's name
    block_size: int,
    accuracy_level: int = 0,
    bits: int = 4,
    weight_prepacked: int = 0,
) -> Value:
    """Sums are of f32, whatever `accuracy_level` allows."""
    if bits not in blockwise.WIDTHS or block_size < 16 or block_size & (block_size - 1):
        raise NodeRefused(
            f"bits is {bits} and block_size {block_size}, accepted are {list(blockwise.WIDTHS)} and"
            " powers of two from 16 on"
        )
    if weight_prepacked:
        raise NodeRefused(f"weight_prepacked is {weight_prepacked}, accepted is 0")
    if data.rank < 1 or data.shape[-1] != K:
        raise VerifyException(f"A has shape {list(data.shape)}, its last size must be K, {K}")
    blocks = -(-K // block_size)
    if g_idx is not None:
        _expect_groups_in_order(context.known(g_idx, "g_idx"), K, block_size)
    codes = _shaped(context, weight, "B", (N, blocks, block_size * bits // 8))
    factors = _shaped(context, scales, "scales", (N, blocks)).astype(_F32)
    points = _zero_points(context, zero_points, bits, (N, blocks))
    constants = [
        context.derived(source, content)
        for source, content in ((weight, codes), (scales, factors), (zero_points or scales, points))
    ]
    product = context.emit(
        blockwise.BlockwiseDenseOp, cast(context, data, _F32), *constants, bits=bits
    )
    if bias is not None:
        product = context.emit(nn.BiasAddOp, product, cast(context, bias, _F32), axis=-1)
    return cast(context, product, data.dtype)


def _shaped(context: NodeContext, value: Value, what: str, shape: tuple[int, ...]) -> Array:
    """The content of a constant operand, which may be written in fewer dimensions.

    Raises:
        VerifyException: it has another number of elements.
    """
    content = context.known(value, what)
    if content.size != np.prod(shape):
        raise VerifyException(f"{what} has shape {list(content.shape)}, accepted is {list(shape)}")
    return content.reshape(shape)


def _zero_points(
    context: NodeContext, value: Value | None, bits: int, shape: tuple[int, int]
) -> Array:
    """Of each block, or `[1, 1]` where all have the same."""
    if value is None:
        return np.full((1, 1), 2 ** (bits - 1), _F32)
    if value.dtype != np.uint8:
        return _shaped(context, value, "zero_points", shape).astype(_F32)
    units, blocks = shape
    packed = _shaped(context, value, "zero_points", (units, -(-blocks * bits // 8)))
    return unpacked(packed, bits)[:, :blocks].astype(_F32)


def _expect_groups_in_order(groups: Array, size: int, block_size: int) -> None:
    if not np.array_equal(groups, np.arange(size) // block_size):
        raise NodeRefused(
            "g_idx puts elements in groups out of order; accepted are blocks one after the other"
        )
