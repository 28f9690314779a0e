"""Attention heads: splitting, scores, weighted sums, masks, merging."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, logic, nn
from byoc_mlir.dialects.relay.shape import agreeing
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.value import Value

LOWEST = float(np.finfo(np.float32).min)
"""Addend for the score of a masked key."""


def expect_rank(value: Value, what: str, *ranks: int) -> None:
    """Refuses an operand whose rank is not one of the given ranks.

    Raises:
        VerifyException: the message names the operand, its shape and the accepted ranks.
    """
    if value.rank not in ranks:
        accepted = " or ".join(map(str, ranks))
        raise VerifyException(f"{what} has shape {list(value.sizes)}, accepted is rank {accepted}")


def expect_shape(value: Value, what: str, *shapes: Sequence[Size]) -> None:
    """Refuses an operand whose shape is not one of the given shapes.

    Raises:
        VerifyException: the message names the operand, its shape and the accepted shapes.
    """
    if not any(agreeing(value.sizes, shape) for shape in shapes):
        accepted = " or ".join(str(list(shape)) for shape in shapes)
        raise VerifyException(f"{what} has shape {list(value.sizes)}, accepted is {accepted}")


def split_heads(context: NodeContext, data: Value, heads: int, what: str) -> Value:
    """Returns `[batch, sequence, heads * size]` as `[batch, heads, sequence, size]`.

    Raises:
        VerifyException: `data` has another shape.
    """
    expect_rank(data, what, 3)
    batch, sequence, _ = data.sizes
    width = data.number(2)
    if heads < 1 or width % heads:
        raise VerifyException(f"{what} has shape {list(data.sizes)}, {heads} heads do not fit")
    parts = arith.reshape(context, data, [batch, sequence, heads, width // heads])
    return arith.transpose(context, parts, [0, 2, 1, 3])


def merge_heads(context: NodeContext, data: Value) -> Value:
    """Returns `[batch, heads, sequence, size]` as `[batch, sequence, heads * size]`."""
    batch, heads, sequence, size = data.sizes
    rows = arith.transpose(context, data, [0, 2, 1, 3])
    return arith.reshape(context, rows, [batch, sequence, index(heads) * index(size)])


def scale_of(scale: float, head_size: int) -> float:
    """Returns the factor to multiply scores with: `scale`, or `1 / sqrt(head_size)` if `scale` is
    0.
    """
    return scale or 1.0 / math.sqrt(head_size)


def products_of(context: NodeContext, query: Value, key: Value) -> Value:
    """Returns the matmul `[batch, heads, queries, keys]` of queries and keys.

    With fewer key heads than query heads, each key head serves a group of consecutive query heads.
    """
    batch, heads, queries, size = query.sizes
    shared = index(key.sizes[1])
    grouped = arith.reshape(context, query, [batch, shared, index(heads) // shared * queries, size])
    product = context.emit(nn.MatmulOp, grouped, key, transpose_b=True)
    return arith.reshape(context, product, [batch, heads, queries, key.sizes[2]])


def scores_of(context: NodeContext, query: Value, key: Value, scale: float) -> Value:
    """Returns the matmul of queries and keys, `[batch, heads, queries, keys]`, times `scale`."""
    return arith.multiply(context, products_of(context, query, key), scale)


def softcapped(context: NodeContext, scores: Value, most: float) -> Value:
    """Returns `most * tanh(scores / most)`, or `scores` if `most` is 0."""
    if not most:
        return scores
    bent = context.emit(elementwise.TanhOp, arith.divide(context, scores, most))
    return arith.multiply(context, bent, most)


def weighted(context: NodeContext, weights: Value, value: Value) -> Value:
    """Returns the sum of `value`, weighted with `weights [batch, heads, queries, keys]`."""
    batch, heads, queries, keys = weights.sizes
    shared = index(value.sizes[1])
    grouped = arith.reshape(
        context, weights, [batch, shared, index(heads) // shared * queries, keys]
    )
    product = context.emit(nn.MatmulOp, grouped, value)
    return arith.reshape(context, product, [batch, heads, queries, value.sizes[3]])


def added(context: NodeContext, scores: Value, addend: Value | None) -> Value:
    """Returns `scores` plus a mask or bias, if there is one.

    Raises:
        VerifyException: the addend does not broadcast to the shape of the scores.
    """
    if addend is None:
        return scores
    fits = addend.rank == scores.rank and all(
        own in (1, size) for own, size in zip(addend.sizes, scores.sizes, strict=True)
    )
    if not fits:
        raise VerifyException(
            f"the mask or bias of the scores has shape {list(addend.sizes)}, accepted is"
            f" {list(scores.sizes)}, with 1 for any of the first two dimensions"
        )
    return arith.add(context, scores, cast(context, addend, scores.dtype))


def places_behind(context: NodeContext, count: Size, past: Size, axis: int) -> Value:
    """Returns the positions of `count` tokens that follow `past` earlier tokens.

    The result has rank 4, with the positions along `axis`.
    """
    places = arith.positions(context, count, axis, 4)
    return places if past == 0 else arith.add(context, places, context.size_constant(past))


def causal_mask(
    context: NodeContext, queries: Value, keys: Size, window: int | None = None
) -> Value | None:
    """Returns a mask that hides later keys, and keys that are `window` or more tokens back.

    Returns `None` if all keys are visible.

    Args:
        queries: positions of the queries, `[batch or 1, 1, queries, 1]`.
    """
    places = arith.positions(context, keys, 3, 4)
    seen = context.emit(logic.LessEqualOp, places, queries)
    if window is not None:
        first = arith.subtract(context, queries, window)
        in_window = context.emit(logic.GreaterOp, places, first)
        seen = context.emit(logic.LogicalAndOp, seen, in_window)
    if seen.constant is not None and seen.constant.all():
        return None
    return blocked(context, seen, LOWEST)


def blocked(context: NodeContext, seen: Value, amount: float) -> Value:
    """Returns 0 where `seen` is true, else `amount`."""
    return context.emit(elementwise.WhereOp, seen, np.float32(0), np.float32(amount))
