"""Attention of new tokens, with a cache of the keys and values of earlier tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from byoc_mlir.dialects.relay import index, logic, reduce, transform
from byoc_mlir.dialects.relay.shape import same
from byoc_mlir.dims import Size, largest
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.branches import either
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.heads import (
    added,
    causal_mask,
    expect_rank,
    expect_shape,
    places_behind,
    scores_of,
    softcapped,
    weighted,
)
from byoc_mlir.frontend.ops.nn import softmax
from byoc_mlir.frontend.ops.prefixes import up_to
from byoc_mlir.frontend.value import Value


@dataclass(frozen=True)
class NewTokens:
    """Positions of the new tokens."""

    most: Size
    """Maximum number of tokens of a batch entry, old and new."""
    new: Size
    past: Size | None
    """Number of old tokens; `None` if it is only known at run time."""
    starts: Value
    """Position of the first new token, an `i64` `[batch or 1, 1, 1, 1]`."""
    is_full: bool = False
    """True if every batch entry has `most` tokens; otherwise the cache may have unused slots."""

    @staticmethod
    def behind(context: NodeContext, past: Size, new: Size) -> NewTokens:
        """Returns the positions of new tokens that follow `past` earlier tokens in each batch
        entry.
        """
        starts = places_behind(context, 1, past, 2)
        return NewTokens(past + new, new, past, starts, is_full=True)

    def last(self, context: NodeContext) -> Value:
        """Returns, as one `i64`, the position of the first new token of the longest batch entry."""
        starts = self.starts
        if starts.sizes[0] != 1:
            starts = arith.reduced(context, reduce.MaxOp, starts, [0])
        return arith.maximum(context, arith.reshape(context, starts, ()), 0)

    def places(self, context: NodeContext, axis: Literal[1, 2]) -> Value:
        """Returns the position of each new token; `axis` is the token axis."""
        return arith.add(context, self.starts, arith.positions(context, self.new, axis, 4))


@dataclass(frozen=True)
class CacheAttention:
    """Attention of queries to the keys and values in a cache."""

    scale: float
    is_causal: bool
    softcap: float = 0.0
    biases: Sequence[Value] = ()
    """Addends for the scores; their last dimension is `most` or the number of keys seen."""
    window: int | None = None
    sink: Value | None = None
    rows: Value | None = None
    """Batch entry of each cached key and value, `[batch, tokens]`; `None` stands for the query's
    own."""

    def over(
        self,
        context: NodeContext,
        tokens: NewTokens,
        q: Value,
        new: tuple[Value, Value],
        cache: tuple[Value, Value],
    ) -> Value:
        """Returns the attention output over a cache that already includes the new tokens.

        Several new tokens are usually a prompt without earlier tokens. If this is known only at run
        time, the code chooses: a prompt attends only to its own tokens, other tokens to the filled
        part of the cache.
        """
        if tokens.is_full:
            return self._of(context, tokens, tokens.most, q, *cache)
        last = tokens.last(context)

        def filled(inner: NodeContext) -> Value:
            end = arith.add(inner, last, inner.size_constant(tokens.new))
            return up_to(
                inner,
                arith.maximum(inner, end, 1),  # there may be no new tokens
                tokens.most,
                lambda within, total: self._of(within, tokens, total, q, *cache),
            )

        if tokens.new == 1 or self.biases or self.rows is not None:
            return filled(context)
        return either(
            context,
            context.emit(logic.EqualOp, last, np.int64(0)),
            lambda inner: self._prompt(inner, tokens, q, *new),
            filled,
        )

    def _prompt(
        self, context: NodeContext, tokens: NewTokens, q: Value, k: Value, v: Value
    ) -> Value:
        """Returns the attention output of new tokens that have no earlier tokens."""
        prompt = NewTokens.behind(context, 0, tokens.new)
        return self._of(context, prompt, tokens.new, q, k, v)

    def _of(
        self, context: NodeContext, tokens: NewTokens, seen: Size, q: Value, k: Value, v: Value
    ) -> Value:
        """Returns the attention output over the first `seen` keys and values."""
        if self.rows is None:
            k, v = (arith.section(context, each, 2, 0, seen) for each in (k, v))
        else:
            rows = arith.section(context, self.rows, 1, 0, seen)
            k, v = (_gathered(context, each, rows) for each in (k, v))
        scores = scores_of(context, q, k, self.scale)
        scores = softcapped(context, scores, self.softcap)
        for bias in self.biases:
            if same(bias.sizes[-1], tokens.most):
                bias = arith.section(context, bias, bias.rank - 1, 0, seen)
            scores = added(context, scores, bias)
        scores = added(context, scores, self._mask(context, tokens, seen))
        if self.sink is None:
            return weighted(context, softmax(context, scores), v)
        return weighted(context, _with_sink(context, scores, self.sink), v)

    def _mask(self, context: NodeContext, tokens: NewTokens, keys: Size) -> Value | None:
        """Returns the mask that hides keys from queries; `None` if all keys are visible."""
        queries = tokens.places(context, 2)
        if self.is_causal:
            return causal_mask(context, queries, keys, self.window)
        if tokens.past is not None:
            return None
        # all up to the last one
        queries = arith.section(context, queries, 2, tokens.new - 1, tokens.new)
        return causal_mask(context, queries, keys)


def _gathered(context: NodeContext, cache: Value, rows: Value) -> Value:
    """Returns the first keys or values of a cache; each comes from the batch entry in `rows`."""
    batch, heads, tokens, size = cache.sizes
    entries = arith.reshape(context, rows, [batch, 1, rows.sizes[1]])
    heads_before = arith.add(
        context,
        arith.multiply(context, entries, context.size_constant(heads)),
        arith.positions(context, heads, 1, 3),
    )
    places = arith.add(
        context,
        arith.multiply(context, heads_before, context.size_constant(tokens)),
        arith.positions(context, rows.sizes[1], 2, 3),
    )
    flat = arith.reshape(context, cache, [batch * heads * tokens, size])
    return context.emit(index.TakeOp, flat, places, axis=0)


def present(context: NodeContext, tokens: NewTokens, past: Value | None, new: Value) -> Value:
    """Returns the cache with the new tokens after the earlier ones; it is at least as large as
    before.
    """
    if past is None:
        return new
    batch, heads, _, size = new.sizes
    expect_rank(past, "the cache", 4)
    capacity = past.sizes[2]
    expect_shape(past, "the cache", (batch, heads, capacity, size))
    most = largest(capacity, tokens.most)
    if tokens.past is None:
        starts = arith.reshape(context, tokens.starts, [tokens.starts.sizes[0]])
        starts = arith.broadcast(context, starts, [batch])
        cache = _filled_up(context, past, most)
        return context.emit(index.UpdateSliceOp, cache, new, starts, axis=2)
    kept = [] if tokens.past == 0 else [arith.section(context, past, 2, 0, tokens.past)]
    return _filled_up(context, arith.concatenate(context, [*kept, new], 2), most)


def _filled_up(context: NodeContext, data: Value, most: Size) -> Value:
    missing = most - data.sizes[2]
    if missing == 0:
        return data
    return context.emit(transform.PadOp, data, pad_width=[0, 0, 0, 0, 0, missing, 0, 0])


def _with_sink(context: NodeContext, scores: Value, sink: Value) -> Value:
    """Returns the softmax over the scores and one sink score per head; the sink's weight is
    dropped.
    """
    batch, heads, queries, keys = scores.sizes
    expect_shape(sink, "head_sink", (heads,), (1,))
    column = arith.reshape(context, cast(context, sink, scores.dtype), [1, sink.sizes[0], 1, 1])
    more = arith.broadcast(context, column, [batch, heads, queries, 1])
    weights = softmax(context, arith.concatenate(context, [scores, more], 3))
    return arith.section(context, weights, 3, 0, keys)
