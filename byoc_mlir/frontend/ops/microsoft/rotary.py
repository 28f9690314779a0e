"""Rotary embeddings: pairs of features rotated by angles that depend on the token's position."""

from __future__ import annotations

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import index
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.heads import (
    expect_rank,
    expect_shape,
    merge_heads,
    split_heads,
)
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value


@register_op(DOMAIN, "RotaryEmbedding")
def rotary_embedding(
    context: NodeContext,
    data: Value,
    position_ids: Value,
    cos_cache: Value,
    sin_cache: Value,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Value:
    if is_packed_batching or scale != 1.0:
        raise NodeRefused(
            f"is_packed_batching is {is_packed_batching} and scale {scale}; accepted are 0 and 1.0"
        )
    expect_rank(data, "input", 3, 4)
    expect_rank(cos_cache, "cos_cache", 2)
    if data.rank == 4:
        angles = angles_of(
            context, position_ids, cos_cache, sin_cache, data.sizes[0], data.sizes[2]
        )
        return rotate(context, data, *angles, interleaved=bool(interleaved))
    batch, sequence, _ = data.sizes
    heads = num_heads or data.number(2) // max(1, rotary_embedding_dim or 2 * cos_cache.number(1))
    parts = split_heads(context, data, heads, "input")
    angles = angles_of(context, position_ids, cos_cache, sin_cache, batch, sequence)
    return merge_heads(context, rotate(context, parts, *angles, interleaved=bool(interleaved)))


def angles_of(
    context: NodeContext,
    position_ids: Value,
    cos_cache: Value,
    sin_cache: Value,
    batch: Size,
    sequence: Size,
) -> tuple[Value, Value]:
    """Returns cosines and sines `[batch or 1, 1, sequence, pairs]` of tokens.

    Args:
        position_ids: position of the first token `[1]`, or of each token `[batch, sequence]`.

    Raises:
        VerifyException: `position_ids` has another shape, or the caches have different shapes.
    """
    expect_shape(sin_cache, "sin_cache", cos_cache.sizes)
    expect_shape(position_ids, "position_ids", (1,), (batch, sequence))
    places = position_ids
    if places.rank == 1:
        first = cast(context, places, np.dtype(np.int64))
        steps = arith.positions(context, sequence, 0, 1)
        places = arith.reshape(context, arith.add(context, first, steps), [1, sequence])
    found = [context.emit(index.TakeOp, cache, places, axis=0) for cache in (cos_cache, sin_cache)]
    shape = [places.sizes[0], 1, *found[0].sizes[1:]]
    cos, sin = (arith.reshape(context, each, shape) for each in found)
    return cos, sin


def rotate(
    context: NodeContext, data: Value, cos: Value, sin: Value, *, interleaved: bool
) -> Value:
    """Rotates the first `2 * pairs` features of `data [batch, heads, sequence, size]`.

    If `interleaved`, a pair consists of adjacent features, else of features at a distance of
    `pairs`.

    Raises:
        VerifyException: there are more angles than pairs.
    """
    pairs, size = cos.number(-1), data.number(-1)
    if 2 * pairs > size:
        raise VerifyException(f"the caches have {pairs} angles, a head has {size} features")
    rest = arith.section(context, data, -1, 2 * pairs, size)
    turned = arith.section(context, data, -1, 0, 2 * pairs)
    shape = [*data.sizes[:-1], *((pairs, 2) if interleaved else (2, pairs))]
    axis = -1 if interleaved else -2
    split = arith.reshape(context, turned, shape)
    first, second = (arith.at(context, split, axis % len(shape), place) for place in (0, 1))
    cos, sin = (cast(context, each, data.dtype) for each in (cos, sin))
    new = [
        arith.subtract(
            context, arith.multiply(context, first, cos), arith.multiply(context, second, sin)
        ),
        arith.add(
            context, arith.multiply(context, first, sin), arith.multiply(context, second, cos)
        ),
    ]
    joined = arith.interleaved(context, new) if interleaved else arith.concatenate(context, new, -1)
    return joined if 2 * pairs == size else arith.concatenate(context, [joined, rest], -1)
