"""MultiHeadAttention: separate projections, as many key heads as query heads, and a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byoc_mlir.dialects.relay import elementwise
from byoc_mlir.dialects.relay.shape import at_most, same
from byoc_mlir.dims import Size, floordiv, largest
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.checked import checked
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.heads import (
    causal_mask,
    expect_rank,
    expect_shape,
    merge_heads,
    places_behind,
    scale_of,
    split_heads,
)
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.ops.microsoft.attention import attended, cut, padding_mask
from byoc_mlir.frontend.ops.microsoft.cached import CacheAttention, NewTokens, present
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value


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
    if past_sequence_length is not None and context.wants(3):
        raise NodeRefused(
            "the output qk is as large as past_sequence_length says, which is known when the model"
            " runs; leave one of them out"
        )
    if (past_key is None) != (past_value is None):
        raise NodeRefused("past_key and past_value must be given together")
    q, k, v = _projections(context, query, key, value, bias, num_heads)
    if unidirectional and not same(k.sizes[2], q.sizes[2]):
        raise NodeRefused(
            f"unidirectional is 1 with {q.sizes[2]} queries and {k.sizes[2]} keys; accepted are"
            " equal numbers"
        )
    attention = _Attention(
        scale=scale_of(scale, q.number(3)),
        is_causal=bool(unidirectional),
        bias=attention_bias,
        padding=key_padding_mask,
        amount=mask_filter_value,
    )
    if past_key is None or past_value is None:
        return attention.over(context, q, k, v, 0)
    expect_rank(past_key, "past_key", 4)
    expect_shape(past_value, "past_value", (*past_key.sizes[:3], v.sizes[3]))
    if past_sequence_length is not None:
        cache = _SharedCache(past_key, past_value, past_sequence_length, cache_indirection)
        return attention.over_shared(context, q, (k, v), cache)
    k = arith.concatenate(context, [past_key, k], 2)
    v = arith.concatenate(context, [past_value, v], 2)
    return attention.over(context, q, k, v, past_key.sizes[2])


@dataclass(frozen=True)
class _SharedCache:
    """Cache of fixed size that beams share, as operands of the node."""

    key: Value
    value: Value
    filled: Value
    """Number of tokens in the cache, one element."""
    beams: Value | None
    """Beam that each cached token comes from, `[batch, beams, tokens]`."""

    @property
    def capacity(self) -> Size:
        """Returns the number of tokens that fit in the cache."""
        return self.key.sizes[2]

    def rows(self, context: NodeContext, tokens: NewTokens) -> Value | None:
        """Returns the cache entry for each token that a beam attends to, `[entries, tokens]`.

        New tokens come from the beam's own entry. With several new tokens, all tokens do, and the
        result is `None`.
        """
        if self.beams is None or not same(tokens.new, 1):
            return None
        entries = self.key.sizes[0]
        expect_rank(self.beams, "cache_indirection", 3)
        count = largest(self.beams.sizes[1], 1)
        shape = (floordiv(entries, count), count, self.capacity)
        expect_shape(self.beams, "cache_indirection", shape)
        given = arith.reshape(context, self.beams, [entries, self.capacity])
        given = cast(context, arith.section(context, given, 1, 0, tokens.most), np.dtype(np.int64))
        beams = context.size_constant(count)
        entry = arith.positions(context, entries, 0, 2)
        first = arith.multiply(context, arith.divide(context, entry, beams), beams)
        is_old = arith.less(
            context,
            arith.positions(context, tokens.most, 1, 2),
            arith.reshape(context, tokens.starts, [1, 1]),
        )
        own = arith.subtract(context, entry, first)
        beam = context.emit(elementwise.WhereOp, is_old, given, own)
        beam = checked(context, beam, beam, "cache_indirection", 0, count - 1)
        return arith.add(context, beam, first)


@dataclass(frozen=True)
class _Attention:
    """Attention of queries to keys, with bias and padding."""

    scale: float
    is_causal: bool
    bias: Value | None
    padding: Value | None
    """Padding of the keys, in one of the forms that `padding_mask` accepts."""
    amount: float
    """Addend for the scores of padding."""

    def over(
        self, context: NodeContext, q: Value, k: Value, v: Value, past: Size
    ) -> Sequence[Value]:
        """Returns the attention output, keys, values and scores; the first `past` keys are from
        earlier calls.
        """
        keys = k.sizes[2]
        masks: tuple[Value | None, ...] = self._biases(context, q, keys)
        if self.is_causal:
            places = places_behind(context, q.sizes[2], past, 2)
            masks = (*masks, causal_mask(context, places, keys))
        out, scores = attended(context, q, k, v, masks, self.scale)
        return merge_heads(context, out), k, v, scores

    def over_shared(
        self, context: NodeContext, q: Value, new: tuple[Value, Value], cache: _SharedCache
    ) -> Sequence[Value]:
        """Returns the attention output over a shared cache, and the cache with the new tokens."""
        count, most = new[0].sizes[2], cache.capacity
        for keys in self._numbers_of_keys():
            most = keys if at_most(keys, most) else most
        starts = arith.reshape(context, cache.filled, [1, 1, 1, 1])
        starts = cast(context, starts, np.dtype(np.int64))
        starts = checked(context, starts, starts, "past_sequence_length", 0, most - count)
        tokens = NewTokens(most, count, None, starts)
        k, v = (
            present(context, tokens, cache.key, new[0]),
            present(context, tokens, cache.value, new[1]),
        )
        attention = CacheAttention(
            scale=self.scale,
            is_causal=self.is_causal,
            biases=self._biases(context, q, most),
            rows=cache.rows(context, tokens),
        )
        return merge_heads(context, attention.over(context, tokens, q, new, (k, v))), k, v

    def _biases(self, context: NodeContext, q: Value, keys: Size) -> tuple[Value, ...]:
        """Returns the addends for the scores, except a causal mask."""
        padding = padding_mask(context, self.padding, q, keys, self.amount)
        return tuple(each for each in (self.bias, padding) if each is not None)

    def _numbers_of_keys(self) -> list[Size]:
        """Returns the numbers of keys that bias and mask cover, if their shapes determine them."""
        given = [each for each in (self.bias, self.padding) if each is not None]
        return [each.sizes[-1] for each in given if each.rank > 1]


def _projections(
    context: NodeContext,
    query: Value,
    key: Value | None,
    value: Value | None,
    bias: Value | None,
    heads: int,
) -> tuple[Value, Value, Value]:
    """Returns query, key and value, `[batch, heads, sequence, size]` each, from any packed form."""
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
            shapes = [None if each is None else list(each.sizes) for each in (query, key, value)]
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
    """Splits `[batch, sequence, heads, count, size]` into `count` tensors of rank 3."""
    batch, sequence, _, _, size = packed.sizes
    expect_shape(packed, what, (batch, sequence, heads, count, size))
    parts = [arith.at(context, packed, 3, place) for place in range(count)]
    return [arith.reshape(context, part, [batch, sequence, heads * size]) for part in parts]


def _with_bias(context: NodeContext, parts: Sequence[Value], bias: Value) -> list[Value]:
    """Adds the bias to the projections; cached keys and values already include it."""
    expect_rank(bias, "bias", 1)
    width = parts[0].number(-1)
    last = bias.number(0) - 2 * width
    biases = cut(context, bias, [width, width, last])
    return [
        part if part.rank == 4 else arith.biased(context, part, own)
        for part, own in zip(parts, biases, strict=True)
    ]
