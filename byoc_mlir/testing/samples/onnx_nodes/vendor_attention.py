"""Ops of `com.microsoft` for attention, and rotary embeddings."""

from __future__ import annotations

import numpy as np

from byoc_mlir.testing.samples.onnx_nodes.choices import maybe
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import MICROSOFT, Tensor
from byoc_mlir.testing.samples.onnx_nodes.values import Shape
from byoc_mlir.testing.samples.onnx_nodes.vendor import F32, add, integers


def _plain(graph: RandomGraph, *shape: int) -> Tensor:
    return graph.tensor(F32, shape, style="plain")


def _mask(graph: RandomGraph, batch: int, new: int, total: int) -> Tensor | None:
    """Returns lengths or a mask of a batch, or `None`."""
    rng = graph.rng
    kind = rng.choice(["none", "none", "lengths", "keys", "keys of each query"])
    if kind == "none":
        return None
    if kind == "lengths":
        return integers(graph, 1, total, (batch,))
    shape = (batch, total) if kind == "keys" else (batch, new, total)
    return integers(graph, 0, 1, shape)


def _bias(graph: RandomGraph, batch: int, heads: int, new: int, total: int) -> Tensor:
    """Returns a bias of the scores."""
    return _plain(graph, graph.rng.choice([1, batch]), graph.rng.choice([1, heads]), new, total)


@recipe("Attention", domain=MICROSOFT)
def attention(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, new, heads, inner = (rng.randint(1, most) for most in (3, 4, 3, 8))
    size, past = rng.choice([1, 2, 4]), rng.choice([0, 0, 1, 2, 4])
    value_size = size if past else rng.choice([size, 3])
    sizes, total = [heads * size, heads * size, heads * value_size], new + past
    types: list[tuple[np.dtype, Shape]] = [(F32, (batch, new, sizes[2]))]
    if past:
        types.append((F32, (2, batch, heads, total, size)))
    add(
        graph,
        op_type,
        [
            _plain(graph, batch, new, inner),
            _plain(graph, inner, sum(sizes)),
            _plain(graph, sum(sizes)),
            _mask(graph, batch, new, total),
            _plain(graph, 2, batch, heads, past, size) if past else None,
            None if past or rng.random() < 0.5 else _bias(graph, batch, heads, new, total),
        ],
        *types,
        num_heads=heads,
        scale=maybe(graph, 0.3),
        mask_filter_value=maybe(graph, -5.0),
        unidirectional=maybe(graph, 1),
        qkv_hidden_sizes=sizes if value_size != size else None,
    )


@recipe("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(graph: RandomGraph, op_type: str) -> None:
    """Adds attention to other tokens, in one of two layouts, or to its own and those before, in a
    cache that grows or has room.
    """
    rng = graph.rng
    batch, new, heads = rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 3)
    size, kind = rng.choice([1, 2, 4]), rng.choice(["cross", "self", "turned", "grows", "shared"])
    keys = rng.randint(1, 5) if kind in ("cross", "turned") else new
    past = rng.randint(0, 5) if kind in ("grows", "shared") else 0
    total = keys + past
    value_size = rng.choice([size, 3]) if kind in ("cross", "self") else size
    capacity = total + rng.randint(0, 3) if kind == "shared" else past
    has_cache = past > 0 or kind == "shared"
    shapes = [(batch, keys, heads * size), (batch, keys, heads * value_size)]
    if kind == "turned":
        shapes = [(batch, heads, keys, size)] * 2
    mask, bias = _mask(graph, batch, new, total), _bias(graph, batch, heads, new, total)
    beams = rng.choice([n for n in range(batch + 1) if n == 0 or batch % n == 0])
    if kind != "shared" or new != 1:
        beams = 0
    if beams:  # ONNX Runtime reads other masks as these, and one bias for all
        mask = maybe(graph, integers(graph, 0, 1, (batch, total)))
        bias = _plain(graph, 1, rng.choice([1, heads]), new, total)
    has_bias = kind != "turned" and rng.random() < 0.5
    types: list[tuple[np.dtype, Shape]] = [(F32, (batch, new, heads * value_size))]
    if has_cache:
        types += [(F32, (batch, heads, capacity if kind == "shared" else total, size))] * 2
    add(
        graph,
        op_type,
        [
            _plain(graph, batch, new, heads * size),
            *(_plain(graph, *shape) for shape in shapes),
            _plain(graph, heads * (2 * size + value_size)) if has_bias else None,
            mask,
            maybe(graph, bias),
            *(_plain(graph, batch, heads, capacity, size) if has_cache else None for _ in "kv"),
            graph.parameter(np.array([past], np.int32)) if kind == "shared" else None,
            _beams(graph, batch, beams, capacity)
            if beams or (kind == "shared" and new > 1)
            else None,
        ],
        *types,
        num_heads=heads,
        scale=maybe(graph, 0.3),
        mask_filter_value=maybe(graph, -5.0),
        unidirectional=maybe(graph, 1) if kind in ("self", "grows", "shared") else None,
    )


def _beams(graph: RandomGraph, batch: int, beams: int, capacity: int) -> Tensor:
    """Returns the beam from which each token of a cache comes; without beams it is not read."""
    if not beams:
        return integers(graph, 0, 0, (1, batch, capacity))
    return integers(graph, 0, beams - 1, (batch // beams, beams, capacity))


@recipe("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(graph: RandomGraph, op_type: str) -> None:
    """Adds attention over a prompt, or over some tokens after others, with a cache that grows or
    has room for more.
    """
    rng = graph.rng
    size, shared, batch = rng.choice([8, 16]), rng.randint(1, 2), rng.randint(1, 3)
    heads = shared * rng.randint(1, 3)
    is_prompt, packed = rng.random() < 0.5, rng.random() < 0.5
    new = rng.randint(1, 5) if is_prompt else 1 if batch > 1 else rng.randint(1, 3)
    past = 0 if is_prompt else rng.randint(1, 6)
    total = new + past
    capacity = rng.choice([past, total, total + rng.randint(1, 3)])
    lengths = [total, *(total if is_prompt else rng.randint(1, total) for _ in range(batch - 1))]
    rotary = size == 16 and rng.random() < 0.5  # ONNX Runtime turns multiples of 16
    width = heads + 2 * shared if packed else heads
    keys = [None if packed else _plain(graph, batch, new, shared * size) for _ in "kv"]
    has_sink = rng.random() < 0.3
    cache = (batch, shared, max(capacity, total), size)
    _, *present = add(
        graph,
        op_type,
        [
            _plain(graph, batch, new, width * size),
            *keys,
            *(_plain(graph, batch, shared, capacity, size) if capacity else None for _ in "kv"),
            graph.parameter(np.array(lengths, np.int32) - 1, as_input=0.5),
            graph.parameter(np.array(total, np.int32)),
            *(_plain(graph, total + 3, size // 2) if rotary else None for _ in "cs"),
            None,
            _bias(graph, batch, heads, new, total) if rng.random() < 0.3 else None,
            _plain(graph, heads) if has_sink else None,
        ],
        (F32, (batch, new, heads * size)),
        *[(F32, cache)] * 2,
        num_heads=heads,
        kv_num_heads=shared,
        do_rotary=int(rotary),
        rotary_interleaved=maybe(graph, rng.randint(0, 1)),
        scale=maybe(graph, 0.3),
        softcap=maybe(graph, 2.0, 0.4),
        local_window_size=maybe(graph, rng.randint(1, 6), 0.4),
        smooth_softmax=None if has_sink else maybe(graph, 1, 0.2),
    )
    if min(lengths) < cache[2]:
        _show_filled(graph, present, min(lengths))


def _show_filled(graph: RandomGraph, caches: list[Tensor], length: int) -> None:
    """Adds the tokens that all entries of the caches have, and hides the others, which are
    undefined.
    """
    tokens = graph.constant(np.arange(length))
    for cache in caches:
        graph.emit("Gather", [cache, tokens], axis=2)
        graph.values.remove(cache)


@recipe("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, length, heads = rng.randint(1, 3), rng.randint(1, 5), rng.randint(1, 3)
    pairs, rest = rng.choice([2, 4, 8]), rng.choice([0, 0, 4])
    size, room = 2 * pairs + rest, rng.randint(0, 4)
    shape = rng.choice([(batch, length, heads * size), (batch, heads, length, size)])
    ids = rng.choice([(0, room, (1,)), (0, length + room - 1, (batch, length))])
    add(
        graph,
        op_type,
        [
            _plain(graph, *shape),
            integers(graph, *ids, dtype=np.int64),
            *(_plain(graph, length + room, pairs) for _ in "cs"),
        ],
        (F32, shape),
        interleaved=maybe(graph, rng.randint(0, 1)),
        num_heads=heads if rest else None,
        rotary_embedding_dim=2 * pairs if rest else None,
    )
