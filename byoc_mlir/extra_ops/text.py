"""Counts of n-grams of integer tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from byoc_mlir.dialects.relay import logic, reduce
from byoc_mlir.frontend import Array, NodeContext, NodeRefused, Value, register_op
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast

_F32 = np.dtype(np.float32)


@register_op("", "TfIdfVectorizer")
def tf_idf_vectorizer(
    context: NodeContext,
    data: Value,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Value:
    if pool_int64s is None:
        raise NodeRefused("n-grams of strings are not supported, only of integers")
    words = data if data.rank == 2 else arith.reshape(context, data, [1, *data.shape])
    words = cast(context, words, np.dtype(np.int64))
    found: list[Value] = []
    for length, (begin, end) in enumerate(pairwise([*ngram_counts, len(pool_int64s)]), start=1):
        grams = np.array(pool_int64s[begin:end], np.int64).reshape(-1, length)
        if not len(grams):
            continue
        skips = range(1 if length == 1 else max_skip_count + 1)
        if not min_gram_length <= length <= max_gram_length:
            skips = range(0)
        found.append(_counts(context, words, grams, skips))
    counts = arith.concatenate(context, found, 1)
    factors = np.ones(len(ngram_indexes)) if weights is None else np.array(weights)
    if mode == "IDF":
        zero = np.float32(0)
        counts = cast(context, context.emit(logic.GreaterOp, counts, zero), _F32)
    if mode != "TF":
        counts = arith.multiply(context, counts, context.constant(factors, _F32))
    placed = _placed(context, counts, ngram_indexes)
    return placed if data.rank == 2 else arith.reshape(context, placed, placed.shape[1:])


def _counts(context: NodeContext, words: Value, grams: Array, skips: Sequence[int]) -> Value:
    """Returns the counts `[N, G]` of each of `grams [G, n]` in each row of `words [N, L]`."""
    count, length = grams.shape
    rows, size = words.shape
    total = context.constant(np.zeros((rows, count)), _F32)
    for skip in skips:
        starts = size - (length - 1) * (skip + 1)
        if starts <= 0:
            continue
        matches: Value | None = None
        for word in range(length):
            begin = word * (skip + 1)
            part = arith.section(context, words, 1, begin, begin + starts)
            part = arith.reshape(context, part, [rows, starts, 1])
            equal = context.emit(logic.EqualOp, part, context.constant(grams[:, word]))
            matches = equal if matches is None else context.emit(logic.LogicalAndOp, matches, equal)
        assert matches is not None
        hits = cast(context, matches, _F32)
        summed = arith.reduced(context, reduce.SumOp, hits, [1], keepdims=False)
        total = arith.add(context, total, summed)
    return total


def _placed(context: NodeContext, counts: Value, columns: Sequence[int]) -> Value:
    """Returns the columns of `counts` at their indices in `columns`, and zeros elsewhere."""
    rows, count = counts.shape
    source = np.full(max(columns) + 1, count)
    source[list(columns)] = np.arange(count)
    zero = context.constant(np.zeros((rows, 1)), _F32)
    return arith.take(context, arith.concatenate(context, [counts, zero], 1), source.tolist(), 1)
