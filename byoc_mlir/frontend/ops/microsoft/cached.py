"""Attention of new tokens, which stand behind others in a cache."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from byoc_mlir.dialects.relay import index, logic, reduce, transform
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.branches import either
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.heads import (
    LOWEST,
    added,
    blocked,
    causal_mask,
    expect_rank,
    expect_shape,
    scores_of,
    softcapped,
    softmax,
    weighted,
)
from byoc_mlir.frontend.ops.prefixes import up_to
from byoc_mlir.frontend.value import Value


@dataclass(frozen=True)
class Tokens:
    """Where the new tokens stand: behind `past` others."""

    most: int
    """The largest number of tokens of a batch entry, old and new."""
    new: int
    past: int | None
    """How many old ones there are; `None` where it is known when the model runs."""
    starts: Value
    """Of each batch entry, or of all, the place of its first new token, `[batch, 1, 1, 1]`."""

    @property
    def is_prompt(self) -> bool:
        """Whether there are no old tokens."""
        return self.past == 0

    def end(self, context: NodeContext) -> Value:
        """How many tokens the longest batch entry has, one `i64`."""
        starts = self.starts
        if starts.sizes[0] != 1:
            starts = arith.reduced(context, reduce.MaxOp, starts, [0])
        last = cast(context, arith.reshape(context, starts, ()), np.dtype(np.int64))
        return arith.add(context, last, self.new)

    def places(self, context: NodeContext, axis: Literal[1, 2]) -> Value:
        """The place of each new token, those of an entry along `axis`."""
        return arith.add(context, self.starts, _range(context, self.new, self.starts, axis))


@dataclass(frozen=True)
class CacheAttention:
    """How queries attend to keys."""

    scale: float
    is_causal: bool
    softcap: float = 0.0
    biases: Sequence[Value] = ()
    """What is added to the scores; the last dimension is that of all tokens, or of those seen."""
    window: int | None = None
    sink: Value | None = None
    rows: Value | None = None
    """From which batch entry of the cache each key and value is taken, `[batch, tokens]`; left out,
    from that of the query."""

    def over(
        self,
        context: NodeContext,
        tokens: Tokens,
        q: Value,
        new: tuple[Value, Value],
        cache: tuple[Value, Value],
    ) -> Value:
        """What queries get of the keys and values in a cache, with the new ones in it.

        Several new tokens are mostly a prompt. Where only the run tells, it attends to itself
        alone. Others attend to what is filled of the cache.
        """
        if tokens.past is not None:
            return self._of(context, tokens, tokens.most, q, *cache)

        def filled(inner: NodeContext) -> Value:
            return up_to(
                inner,
                tokens.end(inner),
                tokens.most,
                lambda within, total: self._of(within, tokens, total, q, *cache),
            )

        if tokens.new == 1 or self.biases or self.rows is not None:
            return filled(context)
        prompt = replace(tokens, most=tokens.new, past=0)
        return either(
            context,
            context.emit(logic.EqualOp, tokens.starts, np.int64(0)),
            lambda inner: self._of(inner, prompt, tokens.new, q, *new),
            filled,
        )

    def _of(
        self, context: NodeContext, tokens: Tokens, seen: Size, q: Value, k: Value, v: Value
    ) -> Value:
        """What queries get of the first `seen` keys and values, which are all that have tokens."""
        if self.rows is None:
            k, v = (arith.section(context, each, 2, 0, seen) for each in (k, v))
        else:
            rows = arith.section(context, self.rows, 1, 0, seen)
            k, v = (_gathered(context, each, rows) for each in (k, v))
        scores = scores_of(context, q, k, self.scale)
        scores = softcapped(context, scores, self.softcap)
        for bias in self.biases:
            if bias.sizes[-1] == tokens.most:
                bias = arith.section(context, bias, bias.rank - 1, 0, seen)
            scores = added(context, scores, bias)
        mask = _mask(context, tokens, seen, self.window, causal=self.is_causal)
        scores = added(context, scores, mask)
        if self.sink is None:
            return weighted(context, softmax(context, scores), v)
        return weighted(context, _with_sink(context, scores, self.sink), v)


def _gathered(context: NodeContext, cache: Value, rows: Value) -> Value:
    """The keys or values at the first places, each of the batch entry that `rows` names."""
    batch, heads, tokens, size = cache.shape
    entries = arith.reshape(context, rows, [batch, 1, rows.sizes[1]])
    heads_before = arith.add(
        context,
        arith.multiply(context, entries, heads),
        arith.positions(context, heads, 1, 3),
    )
    places = arith.add(
        context,
        arith.multiply(context, heads_before, tokens),
        arith.positions(context, rows.sizes[1], 2, 3),
    )
    flat = arith.reshape(context, cache, [batch * heads * tokens, size])
    return context.emit(index.TakeOp, flat, places, axis=0)


def present(context: NodeContext, tokens: Tokens, past: Value | None, new: Value) -> Value:
    """The cache with the new tokens behind the old ones, as large as it was at least."""
    if past is None:
        return new
    batch, heads, _, size = new.shape
    expect_rank(past, "the cache", 4)
    capacity = past.shape[2]
    expect_shape(past, "the cache", (batch, heads, capacity, size))
    most = max(capacity, tokens.most)
    if tokens.past is None:
        starts = arith.reshape(context, tokens.starts, [tokens.starts.shape[0]])
        starts = arith.broadcast(context, starts, [batch])
        cache = _filled_up(context, past, most)
        return context.emit(index.UpdateSliceOp, cache, new, starts, axis=2)
    kept = [arith.section(context, past, 2, 0, tokens.past)] if tokens.past else []
    return _filled_up(context, arith.concatenate(context, [*kept, new], 2), most)


def _filled_up(context: NodeContext, data: Value, most: int) -> Value:
    if data.shape[2] >= most:
        return data
    widths = [0, 0, 0, 0, 0, most - data.shape[2], 0, 0]
    return context.emit(transform.PadOp, data, pad_width=widths)


def _range(context: NodeContext, count: int, like: Value, axis: Literal[1, 2, 3]) -> Value:
    shape = [1, 1, 1, 1]
    shape[axis] = count
    return context.constant(np.arange(count).reshape(shape), like.dtype)


def _mask(
    context: NodeContext, tokens: Tokens, keys: Size, window: int | None, *, causal: bool
) -> Value | None:
    """What keeps each query from tokens that it must not see."""
    if tokens.past is not None:
        if not causal:
            return None
        return causal_mask(context, tokens.new, tokens.most, tokens.past, window)
    queries = tokens.places(context, 2)
    if not causal:  # all up to the last one
        queries = arith.section(context, queries, 2, tokens.new - 1, tokens.new)
    places = _range(context, tokens.most, queries, axis=3)
    places = arith.section(context, places, 3, 0, keys)
    seen = context.emit(logic.LessEqualOp, places, queries)
    if window is not None:
        first = arith.subtract(context, queries, window)
        in_window = context.emit(logic.GreaterOp, places, first)
        seen = context.emit(logic.LogicalAndOp, seen, in_window)
    return blocked(context, seen, LOWEST)


def _with_sink(context: NodeContext, scores: Value, sink: Value) -> Value:
    """Softmax over the scores and one more for each head, whose weight is dropped."""
    batch, heads, queries, keys = scores.sizes
    expect_shape(sink, "head_sink", (operator.index(heads),), (1,))
    column = arith.reshape(context, cast(context, sink, scores.dtype), [1, sink.shape[0], 1, 1])
    more = arith.broadcast(context, column, [batch, heads, queries, 1])
    weights = softmax(context, arith.concatenate(context, [scores, more], 3))
    return arith.section(context, weights, 3, 0, keys)
