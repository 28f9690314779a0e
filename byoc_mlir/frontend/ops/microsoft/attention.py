"""Attention with as many key heads as query heads, as in BERT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byoc_mlir.dialects.relay import logic
from byoc_mlir.dialects.relay.shape import agreeing, same
from byoc_mlir.dims import Size, largest
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.heads import (
    added,
    blocked,
    causal_mask,
    expect_rank,
    expect_shape,
    merge_heads,
    places_behind,
    scale_of,
    scores_of,
    split_heads,
    weighted,
)
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.ops.nn import matmul, softmax
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value


@register_op(DOMAIN, "Attention")
def attention(
    context: NodeContext,
    data: Value,
    weights: Value,
    bias: Value | None = None,
    mask_index: Value | None = None,
    past: Value | None = None,
    attention_bias: Value | None = None,
    past_sequence_length: Value | None = None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] | None = None,
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Sequence[Value | None]:
    expect_plain(do_rotary, past_present_share_buffer)
    expect_rank(data, "input", 3)
    expect_rank(weights, "weights", 2)
    width = weights.number(1)
    sizes = tuple(qkv_hidden_sizes or [width // 3] * 3)
    if len(sizes) != 3 or sum(sizes) != width:
        raise NodeRefused(
            f"qkv_hidden_sizes is {list(sizes)}, accepted are three sizes that add up to {width}"
        )
    return attention_of(
        context,
        cut(context, arith.biased(context, matmul(context, data, weights), bias), sizes),
        num_heads,
        mask_index,
        past,
        attention_bias,
        mask_filter_value=mask_filter_value,
        scale=scale,
        causal=bool(unidirectional),
    )


def expect_plain(do_rotary: int, past_present_share_buffer: int) -> None:
    """Refuses attention with rotary embeddings, or with a cache that is updated in place.

    Raises:
        NodeRefused: the message names the attributes.
    """
    if do_rotary or past_present_share_buffer:
        raise NodeRefused(
            f"do_rotary is {do_rotary} and past_present_share_buffer {past_present_share_buffer};"
            " accepted is 0 for both"
        )


def attention_of(
    context: NodeContext,
    parts: Sequence[Value],
    heads: int,
    mask: Value | None,
    past: Value | None,
    addend: Value | None,
    *,
    mask_filter_value: float,
    scale: float,
    causal: bool,
) -> Sequence[Value | None]:
    """Returns the attention output for the projections of one input, and the cache for the next
    call.

    Args:
        parts: query, key and value, `[batch, sequence, width]` each.
        addend: tensor to add to the scores.
        causal: True if queries do not see later keys.
    """
    query, key, value = (split_heads(context, part, heads, "a projection") for part in parts)
    present, old = None, 0
    if past is not None:
        batch, count, _, size = key.sizes
        expect_rank(past, "past", 5)
        old = past.sizes[3]
        expect_shape(past, "past", (2, batch, count, old, size))
        halves = [arith.at(context, past, 0, half) for half in (0, 1)]
        key = arith.concatenate(context, [halves[0], key], 2)
        value = arith.concatenate(context, [halves[1], value], 2)
    if context.wants(1):
        stacked = [arith.reshape(context, each, [1, *each.sizes]) for each in (key, value)]
        present = arith.concatenate(context, stacked, 0)
    places = places_behind(context, query.sizes[2], old, 2)
    masks = (
        addend,
        padding_mask(context, mask, query, key.sizes[2], mask_filter_value),
        causal_mask(context, places, key.sizes[2]) if causal else None,
    )
    out, _ = attended(context, query, key, value, masks, scale)
    return merge_heads(context, out), present


def attended(
    context: NodeContext,
    query: Value,
    key: Value,
    value: Value,
    masks: Sequence[Value | None],
    scale: float,
) -> tuple[Value, Value]:
    """Returns the attention output, and the scores with `masks` added."""
    scores = scores_of(context, query, key, scale_of(scale, query.number(3)))
    for mask in masks:
        scores = added(context, scores, mask)
    return weighted(context, softmax(context, scores), value), scores


def cut(context: NodeContext, data: Value, sizes: Sequence[int]) -> list[Value]:
    """Splits data into consecutive parts along the last axis."""
    ends = np.cumsum(sizes).tolist()
    return [
        arith.section(context, data, data.rank - 1, end - size, end)
        for size, end in zip(sizes, ends, strict=True)
    ]


def padding_mask(
    context: NodeContext, mask: Value | None, query: Value, keys: Size, amount: float
) -> Value | None:
    """Returns the addend for the scores: `amount` for keys that are padding, else 0.

    A mask of rank 1 holds the end position of each batch entry's keys, perhaps followed by all
    start positions. In a mask of higher rank, 0 marks padding.
    """
    if mask is None:
        return None
    batch, _, queries, _ = query.sizes
    if mask.rank == 1:
        seen = _within_lengths(context, mask, batch, keys)
        return blocked(context, seen, amount)
    shapes = {2: (batch, keys), 3: (batch, queries, keys)}
    if mask.rank == 4:
        mask = _last_queries(context, mask, batch, queries, keys)
    elif not agreeing(mask.sizes, shapes.get(mask.rank, ())):
        raise NodeRefused(
            f"the mask has shape {list(mask.sizes)}; accepted are {list(shapes[2])},"
            f" {list(shapes[3])}, [{batch}] and [{2 * batch}]"
        )
    whole = [batch, 1, mask.sizes[-2] if mask.rank > 2 else 1, keys]
    seen = context.emit(logic.GreaterOp, arith.reshape(context, mask, whole), mask.dtype.type(0))
    return blocked(context, seen, amount)


def _within_lengths(context: NodeContext, lengths: Value, batch: Size, keys: Size) -> Value:
    expect_shape(lengths, "the mask", (batch,), (2 * batch,))
    lengths = cast(context, lengths, np.dtype(np.int64))
    places = arith.positions(context, keys, 3, 4)
    ends = arith.reshape(context, arith.section(context, lengths, 0, 0, batch), [batch, 1, 1, 1])
    seen = context.emit(logic.LessOp, places, ends)
    if same(lengths.sizes[0], batch):
        return seen
    starts = arith.section(context, lengths, 0, batch, 2 * batch)
    starts = arith.reshape(context, starts, [batch, 1, 1, 1])
    begun = context.emit(logic.GreaterEqualOp, places, starts)
    return context.emit(logic.LogicalAndOp, seen, begun)


def _last_queries(
    context: NodeContext, mask: Value, batch: Size, queries: Size, keys: Size
) -> Value:
    """Returns the rows of a mask `[batch, 1, most, most]` that belong to the last `queries` of
    `keys` tokens.
    """
    most = largest(mask.sizes[3], keys)
    expect_shape(mask, "the mask", (batch, 1, most, most))
    rows = arith.section(context, mask, 2, keys - queries, keys)
    return arith.section(context, rows, 3, 0, keys)
