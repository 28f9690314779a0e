"""Attention of generative models: a group of query heads per key head, and a cache of keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import logic
from byoc_mlir.dialects.relay.shape import at_most, same
from byoc_mlir.dims import Size, largest, smallest
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.checked import checked
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.heads import expect_shape, merge_heads, scale_of, split_heads
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.ops.microsoft.cached import CacheAttention, NewTokens, present
from byoc_mlir.frontend.ops.microsoft.norm import simplified_layer_normalization
from byoc_mlir.frontend.ops.microsoft.rotary import angles_of, rotate
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value


@register_op(DOMAIN, "GroupQueryAttention")
def group_query_attention(
    context: NodeContext,
    query: Value,
    key: Value | None,
    value: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    seqlens_k: Value,
    total_sequence_length: Value,
    cos_cache: Value | None = None,
    sin_cache: Value | None = None,
    position_ids: Value | None = None,
    attention_bias: Value | None = None,
    head_sink: Value | None = None,
    k_scale: Value | None = None,
    v_scale: Value | None = None,
    q_norm_weight: Value | None = None,
    k_norm_weight: Value | None = None,
    *,
    num_heads: int,
    kv_num_heads: int,
    causal: int = 1,
    do_rotary: int = 0,
    k_quant_type: str = "NONE",
    kv_cache_bit_width: int = 0,
    local_window_size: int = -1,
    qk_norm_epsilon: float = 1e-6,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    sliding_window_cache: int = 0,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    v_quant_type: str = "NONE",
) -> Sequence[Value | None]:
    if qk_output or sliding_window_cache or kv_cache_bit_width or context.wants(3):
        raise NodeRefused(
            "qk_output, sliding_window_cache and kv_cache_bit_width are"
            f" {[qk_output, sliding_window_cache, kv_cache_bit_width]}, accepted is 0 for all, and"
            " no fourth output"
        )
    if (k_quant_type, v_quant_type) != ("NONE", "NONE") or k_scale or v_scale:
        raise NodeRefused("a quantised cache is not supported; accepted is quant type NONE")
    if not causal and local_window_size != -1:
        raise NodeRefused("local_window_size must be -1 where causal is 0")
    q, k, v = _projections(context, query, key, value, num_heads, kv_num_heads)
    if q_norm_weight is not None and k_norm_weight is not None:
        q, k = (
            simplified_layer_normalization(context, each, weight, epsilon=qk_norm_epsilon)[0]
            for each, weight in ((q, q_norm_weight), (k, k_norm_weight))
        )
    tokens = _tokens(context, q, past_key, seqlens_k, total_sequence_length)
    if do_rotary:
        if cos_cache is None or sin_cache is None:
            raise NodeRefused("do_rotary needs cos_cache and sin_cache")
        batch, _, new, _ = q.sizes
        places = _places(context, tokens, position_ids, batch)
        angles = angles_of(context, places, cos_cache, sin_cache, batch, new)
        q, k = (
            rotate(context, each, *angles, interleaved=bool(rotary_interleaved)) for each in (q, k)
        )
    if (past_key is None) != (past_value is None):
        raise NodeRefused("past_key and past_value must be given together")
    new_k, new_v = k, v
    k, v = (present(context, tokens, past, new) for past, new in ((past_key, k), (past_value, v)))
    attention = CacheAttention(
        scale=scale_of(scale, q.number(3)),
        softcap=softcap,
        biases=() if attention_bias is None else (attention_bias,),
        window=None if local_window_size < 0 else local_window_size,
        is_causal=bool(causal),
        sink=head_sink if smooth_softmax != 1 or head_sink else context.constant([0.0], q.dtype),
    )
    return merge_heads(context, attention.over(context, tokens, q, (new_k, new_v), (k, v))), k, v


def _projections(
    context: NodeContext,
    query: Value,
    key: Value | None,
    value: Value | None,
    heads: int,
    shared: int,
) -> tuple[Value, Value, Value]:
    """Returns query, key and value, `[batch, heads, sequence, size]` each.

    The operand may hold them packed.
    """
    if shared < 1 or heads % shared:
        raise NodeRefused(f"num_heads is {heads}, which kv_num_heads, {shared}, must divide")
    if key is not None and value is not None:
        q = split_heads(context, query, heads, "query")
        return (
            q,
            split_heads(context, key, shared, "key"),
            split_heads(context, value, shared, "value"),
        )
    if key is not None or value is not None:
        raise NodeRefused("key and value must be given together")
    packed = split_heads(context, query, heads + 2 * shared, "query")
    ends = (heads, heads + shared, heads + 2 * shared)
    starts = (0, *ends[:2])
    q, k, v = (
        arith.section(context, packed, 1, start, end)
        for start, end in zip(starts, ends, strict=True)
    )
    return q, k, v


def _tokens(
    context: NodeContext, query: Value, past_key: Value | None, lengths: Value, total: Value
) -> NewTokens:
    """Returns the positions of the new tokens in the cache.

    In a growing cache, new tokens follow all earlier tokens; in a cache of fixed size, their
    positions are computed.
    """
    batch, _, new, _ = query.sizes
    if past_key is None:
        return NewTokens.behind(context, 0, new)
    capacity = past_key.sizes[2]
    count = _count(context, total, new, capacity)
    if count is not None and (batch == 1 or count == new):
        return NewTokens.behind(context, count - new, new)
    if count is None:
        number = cast(context, arith.reshape(context, total, ()), np.dtype(np.int64))
        number = checked(context, number, number, "total_sequence_length", new, capacity)
    else:
        number = context.size_constant(count)
    is_prompt = context.emit(logic.EqualOp, number, context.size_constant(new))
    starts = _starts(context, lengths, is_prompt, batch, new)
    most = capacity if count is None else count
    what = f"the number of tokens in the cache, seqlens_k + 1 - {new},"
    starts = checked(context, starts, starts, what, 0, most - new)
    return NewTokens(most, new, None, starts, is_full=count is not None)


def _count(context: NodeContext, total: Value, new: Size, capacity: Size) -> Size | None:
    """Returns the number of earlier and new tokens; `None` if it is only known at run time.

    The cache has a fixed size if the model declares equal sizes for the given and the returned
    cache.
    """
    count = None if total.known is not None else context.declared_size(1, 2)
    if count is not None and count == capacity:
        return None
    if count is None or not at_most(capacity, count):
        count = context.size(total, "total_sequence_length")
    if same(count, capacity + new):
        return capacity + new
    if not at_most(new, count):
        raise VerifyException(
            f"total_sequence_length is {count}, accepted is {new}, the new tokens, or more"
        )
    return count


def _starts(
    context: NodeContext, lengths: Value, is_prompt: Value, batch: Size, new: Size
) -> Value:
    """Returns the position of the first new token of each batch entry; 0 for a prompt.

    `lengths` are the numbers of tokens minus 1.

    Raises:
        NodeRefused: there are several new tokens in several batch entries, and they are no prompt.
    """
    is_several = smallest(largest(new, 1) - 1, 1)
    entries = arith.where(context, is_prompt, 0, context.size_constant(batch * is_several))
    what = "the number of batch entries with several new tokens behind others"
    if entries.constant is not None and entries.constant > 1:
        raise NodeRefused(f"{what} is {batch}, accepted is 1; or one new token")
    lasts = cast(context, arith.reshape(context, lengths, [batch, 1, 1, 1]), np.dtype(np.int64))
    if entries.constant is None:
        lasts = checked(context, lasts, entries, what, 0, 1)
    begins = arith.subtract(context, lasts, context.size_constant(new - 1))
    return arith.where(context, is_prompt, 0, begins)


def _places(
    context: NodeContext, tokens: NewTokens, position_ids: Value | None, batch: Size
) -> Value:
    """Returns the positions of the new tokens, or only of the first one, as `angles_of` takes
    them.
    """
    if position_ids is not None:
        expect_shape(position_ids, "position_ids", (batch, tokens.new))
        return _given_places(context, tokens, position_ids)
    if tokens.past is not None:
        return context.size_constant([tokens.past])
    return arith.reshape(context, tokens.places(context, 1), [batch, tokens.new])


def _given_places(context: NodeContext, tokens: NewTokens, position_ids: Value) -> Value:
    """Returns the positions that the operand holds; for a prompt, they count from its first
    token.
    """
    if isinstance(tokens.past, int) and tokens.past:
        return position_ids
    first = arith.section(context, arith.at(context, position_ids, 0, 0), 0, 0, 1)
    if tokens.past == 0:
        return first
    first = arith.reshape(context, cast(context, first, np.dtype(np.int64)), [1, 1])
    following = arith.add(context, first, arith.positions(context, tokens.new, 1, 2))
    is_prompt = context.emit(logic.EqualOp, tokens.last(context), np.int64(0))
    return arith.where(context, is_prompt, following, position_ids)
