"""Block-quantised weights of 2 to 8 bits, as in language models."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import blockwise, index, logic, nn
from byoc_mlir.dialects.relay.shape import same
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import Array, NodeRefused, Value
from byoc_mlir.numpy_ops.blockwise import packed, unpacked

_F32 = np.dtype(np.float32)
_BYTES_LEVEL = 4
"""Value of `accuracy_level` that asks for data in int8."""


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
    """Imports MatMulNBits; it computes in f32, or with data in int8 if `accuracy_level` asks for
    that.
    """
    if bits not in blockwise.WIDTHS or block_size < 16 or block_size & (block_size - 1):
        raise NodeRefused(
            f"bits is {bits} and block_size {block_size}, accepted are {list(blockwise.WIDTHS)} and"
            " powers of two from 16 on"
        )
    if weight_prepacked:
        raise NodeRefused(f"weight_prepacked is {weight_prepacked}, accepted is 0")
    if data.rank < 1 or not same(data.sizes[-1], K):
        raise VerifyException(f"A has shape {list(data.sizes)}, its last size must be K, {K}")
    blocks = -(-K // block_size)
    if g_idx is not None:
        _expect_groups_in_order(context.known(g_idx, "g_idx"), K, block_size)
    codes = _shaped(context, weight, "B", (N, blocks, block_size * bits // 8))
    factors = cast(context, _shaped(context, scales, "scales", (N, blocks)), _F32)
    points = _zero_points(context, zero_points, bits, (N, blocks))
    product = context.emit(
        blockwise.BlockwiseDenseOp,
        *(cast(context, data, _F32), codes, factors, points),
        bits=bits,
        rounds=accuracy_level == _BYTES_LEVEL,
    )
    if bias is not None:
        product = context.emit(nn.BiasAddOp, product, cast(context, bias, _F32), axis=-1)
    return cast(context, product, data.dtype)


@register_op(DOMAIN, "GatherBlockQuantized")
def gather_block_quantized(
    context: NodeContext,
    data: Value,
    indices: Value,
    scales: Value,
    zero_points: Value | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Value:
    """Gathers rows of a block-quantised matrix, then dequantises the gathered rows."""
    is_bytes = data.dtype == np.uint8
    if data.rank != 2 or gather_axis not in (0, -2) or quantize_axis not in (1, -1):
        raise NodeRefused(
            f"data has shape {list(data.shape)}, gather_axis is {gather_axis} and quantize_axis"
            f" {quantize_axis}; accepted are two dimensions, 0 and 1"
        )
    if bits not in ((4, 8) if is_bytes else (4,)):
        raise NodeRefused(f"bits is {bits} of codes {data.dtype}, accepted is 4, or 8 in bytes")
    lowest = int(ml_dtypes.iinfo(data.dtype).min)
    rows, width = data.shape[0], data.shape[1] * (8 // bits if is_bytes else 1)
    blocks = -(-width // block_size)
    if width % block_size and blocks > 1:
        raise NodeRefused(f"{width} columns are no blocks of {block_size}; accepted are whole ones")
    codes = context.known(data, "data")
    points = np.full((1, 1), 2 ** (bits - 1) if is_bytes else -lowest, _F32)
    if zero_points is not None:
        given = context.known(zero_points, "zero_points")
        points = (unpacked(given, bits) if is_bytes else given).astype(_F32)[:, :blocks] - lowest
    if not is_bytes:
        codes = packed((codes.astype(np.int8) - lowest).astype(np.uint8), bits)
    factors = cast(context, _shaped(context, scales, "scales", (rows, blocks)), _F32)

    def taken(table: Value) -> Value:
        return context.emit(index.TakeOp, table, indices, axis=0)

    numbers = _unpacked(context, taken(context.derived(data, codes)), bits)
    shape = [*indices.sizes, blocks, width // blocks]
    numbers = arith.reshape(context, arith.section(context, numbers, -1, 0, width), shape)
    shift = context.derived(zero_points or data, points)
    shift = shift if points.size == 1 else taken(shift)
    columns = [arith.reshape(context, each, [*each.sizes, 1]) for each in (shift, taken(factors))]
    weights = arith.multiply(context, arith.subtract(context, numbers, columns[0]), columns[1])
    whole = arith.reshape(context, weights, [*indices.sizes, width])
    return cast(context, whole, scales.dtype)


def _unpacked(context: NodeContext, packed: Value, bits: int) -> Value:
    """Returns the codes that the bytes of the last dimension hold, as f32; the lowest bits come
    first.
    """
    parts = [
        context.emit(
            logic.BitwiseAndOp,
            context.emit(logic.RightShiftOp, packed, np.uint8(offset)),
            np.uint8(2**bits - 1),
        )
        for offset in range(0, 8, bits)
    ]
    return cast(context, arith.interleaved(context, parts), _F32)


def _shaped(context: NodeContext, value: Value, what: str, shape: tuple[int, ...]) -> Value:
    """Returns an operand, reshaped to `shape`.

    Raises:
        VerifyException: the operand has another number of elements.
    """
    if not same(math.prod(value.sizes), math.prod(shape)):
        raise VerifyException(f"{what} has shape {list(value.sizes)}, accepted is {list(shape)}")
    if value.constant is not None:
        return context.derived(value, value.constant.reshape(shape))
    return arith.reshape(context, value, shape)


def _zero_points(
    context: NodeContext, value: Value | None, bits: int, shape: tuple[int, int]
) -> Value:
    """Returns the zero points of all blocks, or `[1, 1]` if all blocks have the same one."""
    if value is None:
        return context.constant(np.full((1, 1), 2 ** (bits - 1), _F32))
    if value.dtype != np.uint8:
        return cast(context, _shaped(context, value, "zero_points", shape), _F32)
    units, blocks = shape
    packed = _shaped(context, value, "zero_points", (units, -(-blocks * bits // 8)))
    if packed.constant is not None:
        return context.derived(value, unpacked(packed.constant, bits)[:, :blocks].astype(_F32))
    return arith.section(context, _unpacked(context, packed, bits), 1, 0, blocks)


def _expect_groups_in_order(groups: Array, size: int, block_size: int) -> None:
    if not np.array_equal(groups, np.arange(size) // block_size):
        raise NodeRefused(
            "g_idx puts elements in groups out of order; accepted are blocks one after the other"
        )
