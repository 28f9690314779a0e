"""Attention, with caches of keys and values, and rotary embeddings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.interpreter.products import matmul
from byoc_mlir.numpy_ops.activation import softmax
from byoc_mlir.tensors import Array


def _attended(
    q: Array,
    keys: Array,
    values: Array,
    scale: float,
    addends: Sequence[Array | None] = (),
    is_seen: Array | None = None,
    *,
    softcap: float = 0.0,
    sink: Array | None = None,
) -> Array:
    """Returns the attention output, `[batch, queries, heads * size]`.

    Args:
        q: queries, `[batch, heads, queries, size]`.
        keys, values: `[batch, shared heads, keys, size]`; consecutive heads of queries share one.
        scale: factor of the scores; 0 stands for `1 / sqrt(size)`.
        addends: addends of the scores, which broadcast to `[batch, heads, queries, keys]`.
        is_seen: keys that a query sees, `[batch or 1, queries, keys]`.
        sink: a further score for each head of the queries, whose weight is dropped.
    """
    batch, heads, queries, size = q.shape
    shared, count = keys.shape[1:3]
    group = heads // shared
    added = [np.broadcast_to(x, (batch, heads, queries, count)) for x in addends if x is not None]
    result = np.empty((batch, queries, heads, values.shape[3]), np.float32)
    for entry, head in np.ndindex(batch, shared):
        own = slice(head * group, (head + 1) * group)
        rows = q[entry, own].reshape(group * queries, size)
        scores = matmul(rows, keys[entry, head].T).reshape(group, queries, count)
        scores *= np.float32(scale or 1 / math.sqrt(size))
        if softcap:
            scores = np.tanh(scores / np.float32(softcap)) * np.float32(softcap)
        for addend in added:
            scores += addend[entry, own]
        if is_seen is not None:
            scores[:, ~is_seen[entry % len(is_seen)]] = -np.inf
        if sink is not None:
            column = np.broadcast_to(sink[own, None, None], (group, queries, 1))
            scores = np.concatenate([scores, column], -1)
        weights = softmax(scores, -1)[..., :count].reshape(group * queries, count)
        output = matmul(weights, values[entry, head]).reshape(group, queries, -1)
        result[entry, :, own] = output.swapaxes(0, 1)
    return result.reshape(batch, queries, heads * values.shape[3])


def _split(x: Array, heads: int) -> Array:
    """Returns `[batch, sequence, heads * size]` as `[batch, heads, sequence, size]`."""
    batch, sequence, width = x.shape
    return x.reshape(batch, sequence, heads, width // heads).swapaxes(1, 2)


def _behind(
    past_key: Array | None, past_value: Array | None, key: Array, value: Array
) -> tuple[Array, Array]:
    """Returns keys and values with those of earlier calls, if there are any, before them."""
    if past_key is None or past_value is None:
        return key, value
    return np.concatenate([past_key, key], 2), np.concatenate([past_value, value], 2)


def _merged(x: Array) -> Array:
    """Returns `[batch, heads, sequence, size]` as `[batch, sequence, heads * size]`."""
    batch, heads, sequence, size = x.shape
    return x.swapaxes(1, 2).reshape(batch, sequence, heads * size)


def _group_query_attention(
    query: Array,
    key: Array | None,
    value: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    lengths: Array,
    total: Array,
    cos: Array | None = None,
    sin: Array | None = None,
    positions: None = None,
    bias: Array | None = None,
    sink: Array | None = None,
    *,
    num_heads: int,
    kv_num_heads: int,
    do_rotary: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    softcap: float = 0.0,
    local_window_size: int = -1,
    smooth_softmax: int = -1,
) -> tuple[Array, Array, Array]:
    """Computes the attention of new tokens, which are a prompt or follow others in a cache."""
    if key is None or value is None:
        packed = _split(query, num_heads + 2 * kv_num_heads)
        q, k, v = np.split(packed, [num_heads, num_heads + kv_num_heads], axis=1)
    else:
        q, k, v = _split(query, num_heads), _split(key, kv_num_heads), _split(value, kv_num_heads)
    batch, _, new, _ = q.shape
    count = total.item()
    starts = np.zeros(batch, np.int64)
    if count != new:
        starts = lengths.reshape(batch).astype(np.int64) + 1 - new
        if batch > 1 and new > 1:
            raise NotInterpretedError("several new tokens in several batch entries")
    room = 0 if past_key is None else past_key.shape[2]
    if starts.min() < 0 or starts.max() > room or starts.max() + new > count:
        raise NotInterpretedError("tokens that do not follow those of the cache")
    places = starts[:, None] + np.arange(new)
    if do_rotary and cos is not None and sin is not None:
        angles = cos[places], sin[places], bool(rotary_interleaved)
        q, k = _rotated(q, *angles), _rotated(k, *angles)
    keys = _present(past_key, k, starts, count)
    values = _present(past_value, v, starts, count)
    distance = places[..., None] - np.arange(count)
    is_seen = distance >= 0
    if local_window_size >= 0:
        is_seen &= distance < local_window_size
    if sink is None and smooth_softmax == 1:
        sink = np.zeros(num_heads, np.float32)
    seen = keys[:, :, :count], values[:, :, :count]
    addend = None if bias is None else bias[..., :count]
    result = _attended(q, *seen, scale, [addend], is_seen, softcap=softcap, sink=sink)
    return result, keys, values


def _present(past: Array | None, new: Array, starts: Array, count: int) -> Array:
    """Returns the cache, with room for `count` tokens or more, and the new tokens in it."""
    batch, heads, length, size = new.shape
    room = count if past is None else max(past.shape[2], count)
    cache = np.zeros((batch, heads, room, size), np.float32)
    if past is not None:
        cache[:, :, : past.shape[2]] = past
    for entry, start in enumerate(starts.tolist()):
        cache[entry, :, start : start + length] = new[entry]
    return cache


def _multi_head_attention(
    query: Array,
    key: Array | None = None,
    value: Array | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    addend: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Array, Array, Array]:
    if key is None or value is None or key.ndim not in (3, 4):
        raise NotInterpretedError("packed keys and values")
    parts = [query, key, value]
    if bias is not None:
        ends = [query.shape[2], 2 * query.shape[2]]
        both = zip(parts, np.split(bias, ends), strict=True)
        parts = [x if x.ndim == 4 else x + own for x, own in both]
    q, k, v = (x if x.ndim == 4 else _split(x, num_heads) for x in parts)
    if unidirectional and k.shape[2] != q.shape[2]:
        raise NotInterpretedError("more keys than queries")
    k, v = _behind(past_key, past_value, k, v)
    addends = addend, _padding(mask, len(q), k.shape[2], mask_filter_value)
    is_seen = _later_hidden(q, k) if unidirectional else None
    return _attended(q, k, v, scale, addends, is_seen), k, v


def _attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    *,
    opset: int,
    is_causal: int = 0,
    kv_num_heads: int = 0,
    q_num_heads: int = 0,
    scale: float = 0.0,
    softcap: float = 0.0,
) -> tuple[Array, Array, Array]:
    heads = q_num_heads, kv_num_heads, kv_num_heads
    parts = zip((query, key, value), heads, strict=True)
    q, k, v = (x if x.ndim == 4 else _split(x, count) for x, count in parts)
    new = k.shape[2]
    k, v = _behind(past_key, past_value, k, v)
    queries, keys = q.shape[2], k.shape[2]
    if v.shape[:3] != k.shape[:3]:
        raise NotInterpretedError("heads or numbers of keys and values that differ")
    if mask is not None and mask.shape[-1] not in ((1, keys) if opset < 24 else (keys,)):
        raise NotInterpretedError("a mask of fewer keys")
    bias = np.zeros((queries, keys), np.float32) if mask is None else mask
    if bias.dtype == np.bool_:
        bias = np.where(bias, np.float32(0), np.float32(-np.inf))
    if is_causal:
        bias = np.where(np.tri(queries, keys, keys - new, np.bool_), bias, np.float32(-np.inf))
    is_blind = (bias == -np.inf).all(-1, keepdims=True)
    addend = np.where(is_blind, np.float32(0), bias)
    result = _split(_attended(q, k, v, scale, [addend], softcap=softcap), q.shape[1])
    result = np.where(is_blind, np.float32(0), result)
    return result if query.ndim == 4 else _merged(result), k, v


def _microsoft_attention(
    data: Array,
    weights: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    past: Array | None = None,
    addend: Array | None = None,
    *,
    outputs: int,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    qkv_hidden_sizes: Sequence[int] | None = None,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> tuple[Array, ...]:
    projected = matmul(data, weights)
    if bias is not None:
        projected += bias
    ends = np.cumsum(qkv_hidden_sizes or [weights.shape[1] // 3] * 3)[:2].tolist()
    q, k, v = (_split(part, num_heads) for part in np.split(projected, ends, axis=-1))
    if past is not None:
        k, v = _behind(past[0], past[1], k, v)
    addends = addend, _padding(mask, len(q), k.shape[2], mask_filter_value)
    is_seen = _later_hidden(q, k) if unidirectional else None
    result = _attended(q, k, v, scale, addends, is_seen)
    return (result, np.stack([k, v])) if outputs > 1 else (result,)


def _later_hidden(q: Array, k: Array) -> Array:
    """Returns the keys that each of the last queries sees: itself and those before."""
    queries, keys = q.shape[2], k.shape[2]
    return np.tri(queries, keys, keys - queries, np.bool_)[None]


def _padding(mask: Array | None, batch: int, keys: int, amount: float) -> Array | None:
    """Returns the addend of the scores: `amount` for keys that are padding.

    Args:
        mask: the end of each batch entry's keys, perhaps followed by all starts; or 0 for padding,
            `[batch, keys]` or `[batch, queries, keys]`.
    """
    if mask is None:
        return None
    if mask.ndim == 1:
        ends, *starts = mask.reshape(-1, batch, 1)
        seen = np.arange(keys) < ends
        for start in starts:
            seen &= np.arange(keys) >= start
    elif mask.ndim in (2, 3):
        seen = mask > 0
    else:
        raise NotInterpretedError("a mask of four dimensions")
    return np.where(seen, np.float32(0), np.float32(amount)).reshape(batch, 1, -1, keys)


def _rotary_embedding(
    x: Array,
    cos: Array,
    sin: Array,
    positions: Array | None = None,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Array:
    heads = x if x.ndim == 4 else _split(x, num_heads)
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    if 2 * cos.shape[-1] != (rotary_embedding_dim or heads.shape[3]):
        raise NotInterpretedError("angles for other features than those to rotate")
    result = _rotated(heads, cos, sin, bool(interleaved))
    return result if x.ndim == 4 else _merged(result)


def _microsoft_rotary_embedding(
    x: Array,
    positions: Array,
    cos: Array,
    sin: Array,
    *,
    interleaved: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Array:
    """Rotates features as `_rotary_embedding`; one position is that of the first token."""
    size = 2 * cos.shape[1]
    return _rotary_embedding(
        x,
        cos,
        sin,
        positions + np.arange(x.shape[-2])[None] if positions.shape == (1,) else positions,
        interleaved=interleaved,
        num_heads=num_heads or x.shape[-1] // (rotary_embedding_dim or size),
        rotary_embedding_dim=size,
    )


def _rotated(x: Array, cos: Array, sin: Array, interleaved: bool) -> Array:
    """Returns `x [batch, heads, sequence, size]` with its first pairs of features rotated.

    Args:
        cos, sin: of each token and pair, `[batch or 1, sequence, pairs]`.
        interleaved: True if a pair is adjacent features, not features at a distance of `pairs`.
    """
    pairs = cos.shape[-1]
    if 2 * pairs > x.shape[-1]:
        raise NotInterpretedError("more angles than pairs of features")
    firsts, seconds = slice(0, pairs), slice(pairs, 2 * pairs)
    if interleaved:
        firsts, seconds = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    cos, sin = cos[:, None], sin[:, None]
    result = x.copy()
    result[..., firsts] = x[..., firsts] * cos - x[..., seconds] * sin
    result[..., seconds] = x[..., firsts] * sin + x[..., seconds] * cos
    return result


OPS: Mapping[str, Callable[..., Any]] = {
    "Attention": _attention,
    "RotaryEmbedding": _rotary_embedding,
    "com.microsoft.Attention": _microsoft_attention,
    "com.microsoft.GroupQueryAttention": _group_query_attention,
    "com.microsoft.MultiHeadAttention": _multi_head_attention,
    "com.microsoft.RotaryEmbedding": _microsoft_rotary_embedding,
}
"""Implementations by their names, as in `schemas.name_of`."""
