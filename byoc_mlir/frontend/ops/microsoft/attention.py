"""Attention over heads of equal number, as BERT and its kind have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byoc_mlir.dialects.relay import logic
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.heads import (
    added,
    blocked,
    causal_mask,
    expect_rank,
    expect_shape,
    merge_heads,
    scale_of,
    scores_of,
    softmax,
    split_heads,
    weighted,
)
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN, biased
from byoc_mlir.frontend.ops.nn import matmul
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
    if do_rotary or past_present_share_buffer:
        raise NodeRefused(
            f"do_rotary is {do_rotary} and past_present_share_buffer {past_present_share_buffer};"
            " accepted is 0 for both"
        )
    expect_rank(data, "input", 3)
    expect_rank(weights, "weights", 2)
    third = weights.shape[1] // 3
    sizes = tuple(qkv_hidden_sizes or (third, third, third))
    if len(sizes) != 3 or sum(sizes) != weights.shape[1]:
        raise NodeRefused(
            f"qkv_hidden_sizes is {list(sizes)}, accepted are three sizes that add up to"
            f" {weights.shape[1]}"
        )
    return attention_of(
        context,
        cut(context, biased(context, matmul(context, data, weights), bias), sizes),
        num_heads,
        mask_index,
        past,
        attention_bias,
        mask_filter_value=mask_filter_value,
        scale=scale,
        causal=bool(unidirectional),
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
    """Attention of the projections of one input, with what it leaves for the next call.

    Args:
        parts: query, key and value, `[batch, sequence, width]` each.
        addend: added to the scores.
        causal: whether keys after a query are hidden from it.
    """
    query, key, value = (split_heads(context, part, heads, "a projection") for part in parts)
    present, new = None, query.shape[2]
    if past is not None:
        batch, count, _, size = key.shape
        expect_rank(past, "past", 5)
        expect_shape(past, "past", (2, batch, count, past.shape[3], size))
        halves = [arith.at(context, past, 0, half) for half in (0, 1)]
        key = arith.concatenate(context, [halves[0], key], 2)
        value = arith.concatenate(context, [halves[1], value], 2)
    if context.wants(1):
        stacked = [arith.reshape(context, each, [1, *each.shape]) for each in (key, value)]
        present = arith.concatenate(context, stacked, 0)
    masks = (
        addend,
        _padding_mask(context, mask, query.shape, key.shape[2], mask_filter_value),
        causal_mask(context, new, key.shape[2], key.shape[2] - new) if causal else None,
    )
    return merge_heads(context, _attend(context, query, key, value, masks, scale)), present


@register_op(DOMAIN, "MultiHeadAttention")
def multi_head_attention(
    context: NodeContext,
    query: Value,
    key: Value | None = None,
    value: Value | None = None,
    bias: Value | None = None,
    key_padding_mask: Value | None = None,
    attention_bias: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    past_sequence_length: Value | None = None,
    cache_indirection: Value | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Sequence[Value | None]:
    if past_sequence_length is not None or cache_indirection is not None or context.wants(3):
        raise NodeRefused(
            "the inputs past_sequence_length and cache_indirection and the output qk are not"
            " supported; leave them out"
        )
    heads = _projections(context, query, key, value, bias, num_heads)
    q, k, v = heads
    if (past_key is None) != (past_value is None):
        raise NodeRefused("past_key and past_value must be given together")
    old = 0 if past_key is None else past_key.shape[2]
    if past_key is not None and past_value is not None:
        expect_rank(past_key, "past_key", 4)
        expect_shape(past_value, "past_value", (*past_key.shape[:3], v.shape[3]))
        k = arith.concatenate(context, [past_key, k], 2)
        v = arith.concatenate(context, [past_value, v], 2)
    if unidirectional and k.shape[2] != q.shape[2] + old:
        raise NodeRefused(
            f"unidirectional is 1 with {q.shape[2]} queries and {k.shape[2] - old} keys; accepted"
            " are equal numbers"
        )
    masks = (
        attention_bias,
        _padding_mask(context, key_padding_mask, q.shape, k.shape[2], mask_filter_value),
        causal_mask(context, q.shape[2], k.shape[2], old) if unidirectional else None,
    )
    return merge_heads(context, _attend(context, q, k, v, masks, scale)), k, v


def _attend(
    context: NodeContext,
    query: Value,
    key: Value,
    value: Value,
    masks: Sequence[Value | None],
    scale: float,
) -> Value:
    scores = scores_of(context, query, key, scale_of(scale, query.shape[3]))
    for mask in masks:
        scores = added(context, scores, mask)
    return weighted(context, softmax(context, scores), value)


def cut(context: NodeContext, data: Value, sizes: Sequence[int]) -> list[Value]:
    """Consecutive parts along the last axis."""
    ends = np.cumsum(sizes).tolist()
    return [
        arith.section(context, data, data.rank - 1, end - size, end)
        for size, end in zip(sizes, ends, strict=True)
    ]


def _projections(
    context: NodeContext,
    query: Value,
    key: Value | None,
    value: Value | None,
    bias: Value | None,
    heads: int,
) -> tuple[Value, Value, Value]:
    """Query, key and value as `[batch, heads, sequence, size]`, however they are packed."""
    match (query.rank, None if key is None else key.rank, None if value is None else value.rank):
        case (5, None, None):
            parts = _unpacked(context, query, heads, 3, "query")
        case (3, 5, None):
            assert key is not None
            parts = [query, *_unpacked(context, key, heads, 2, "key")]
        case (3, 3, 3) | (3, 4, 4):
            assert key is not None
            assert value is not None
            parts = [query, key, value]
        case _:
            shapes = [None if each is None else list(each.shape) for each in (query, key, value)]
            raise NodeRefused(
                f"query, key and value have shapes {shapes}; accepted are ranks 3, 3, 3, or 3, 4,"
                " 4, or a packed query of rank 5 alone, or a query with a packed key of rank 5"
            )
    if bias is not None:
        parts = _with_bias(context, parts, bias)
    q, k, v = (
        part if part.rank == 4 else split_heads(context, part, heads, what)
        for part, what in zip(parts, ("query", "key", "value"), strict=True)
    )
    return q, k, v


def _unpacked(
    context: NodeContext, packed: Value, heads: int, count: int, what: str
) -> list[Value]:
    """`[batch, sequence, heads, count, size]` as `count` tensors `[batch, sequence, width]`."""
    batch, sequence, _, _, size = packed.shape
    expect_shape(packed, what, (batch, sequence, heads, count, size))
    parts = [arith.at(context, packed, 3, place) for place in range(count)]
    return [arith.reshape(context, part, [batch, sequence, heads * size]) for part in parts]


def _with_bias(context: NodeContext, parts: Sequence[Value], bias: Value) -> list[Value]:
    """The bias of the projections added; keys and values from a cache have had theirs."""
    width = parts[0].shape[-1]
    last = bias.shape[0] - 2 * width
    expect_rank(bias, "bias", 1)
    biases = cut(context, bias, [width, width, last])
    return [
        part if part.rank == 4 else biased(context, part, own)
        for part, own in zip(parts, biases, strict=True)
    ]


def _padding_mask(
    context: NodeContext,
    mask: Value | None,
    query_shape: Sequence[int],
    keys: int,
    amount: float,
) -> Value | None:
    """What is added to the scores: `amount` for keys that are padding.

    The mask says 0 for padding, or gives the ends of the keys, perhaps followed by their starts.
    """
    if mask is None:
        return None
    batch, _, queries, _ = query_shape
    if mask.rank == 1:
        seen = _within_lengths(context, mask, batch, keys)
        return blocked(context, seen, amount)
    shapes = {2: (batch, keys), 3: (batch, queries, keys)}
    if mask.rank == 4:
        mask = _last_queries(context, mask, batch, queries, keys)
    elif mask.shape != shapes.get(mask.rank):
        raise NodeRefused(
            f"the mask has shape {list(mask.shape)}; accepted are {list(shapes[2])},"
            f" {list(shapes[3])}, [{batch}] and [{2 * batch}]"
        )
    whole = [batch, 1, mask.shape[-2] if mask.rank > 2 else 1, keys]
    seen = context.emit(logic.GreaterOp, arith.reshape(context, mask, whole), mask.dtype.type(0))
    return blocked(context, seen, amount)


def _within_lengths(context: NodeContext, lengths: Value, batch: int, keys: int) -> Value:
    expect_shape(lengths, "the mask", (batch,), (2 * batch,))
    places = context.constant(np.arange(keys).reshape(1, 1, 1, keys), lengths.dtype)
    ends = arith.reshape(context, arith.section(context, lengths, 0, 0, batch), [batch, 1, 1, 1])
    seen = context.emit(logic.LessOp, places, ends)
    if lengths.shape[0] == batch:
        return seen
    starts = arith.section(context, lengths, 0, batch, 2 * batch)
    starts = arith.reshape(context, starts, [batch, 1, 1, 1])
    begun = context.emit(logic.GreaterEqualOp, places, starts)
    return context.emit(logic.LogicalAndOp, seen, begun)


def _last_queries(context: NodeContext, mask: Value, batch: int, queries: int, keys: int) -> Value:
    """The part of a square mask `[batch, 1, most, most]` for the last `queries` of `keys`."""
    most = mask.shape[3]
    expect_shape(mask, "the mask", (batch, 1, max(most, keys), max(most, keys)))
    rows = arith.section(context, mask, 2, keys - queries, keys)
    return arith.section(context, rows, 3, 0, keys)
