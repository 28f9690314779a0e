"""Ops of `com.microsoft` for attention, and rotary embeddings."""

from __future__ import annotations

import numpy as np

from byoc_mlir.testing.samples.onnx_nodes.choices import maybe
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import MICROSOFT, Tensor
from byoc_mlir.testing.samples.onnx_nodes.values import Shape
from byoc_mlir.testing.samples.onnx_nodes.vendor import F32, add


def _plain(graph: RandomGraph, shape: Shape) -> Tensor:
    return graph.tensor(F32, shape, style="plain")


@recipe("Attention", domain=MICROSOFT)
def attention(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, length, heads, size = (rng.randint(1, 2), rng.randint(1, 6), rng.randint(1, 3), 4)
    width, inner = heads * size, rng.choice([4, 8])
    lengths = np.array([rng.randint(1, length) for _ in range(batch)], np.int32)
    add(
        graph,
        op_type,
        [
            _plain(graph, (batch, length, inner)),
            _plain(graph, (inner, 3 * width)),
            _plain(graph, (3 * width,)),
            graph.parameter(lengths, as_input=0.7) if rng.random() < 0.5 else None,
        ],
        (batch, length, width),
        num_heads=heads,
        scale=maybe(graph, 0.25, 0.3),
        unidirectional=maybe(graph, 1, 0.4),
    )


@recipe("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, queries, keys = rng.randint(1, 2), rng.randint(1, 5), rng.randint(1, 6)
    heads, size = rng.randint(1, 3), rng.choice([2, 4])
    width = heads * size
    add(
        graph,
        op_type,
        [
            _plain(graph, (batch, queries, width)),
            _plain(graph, (batch, keys, width)),
            _plain(graph, (batch, keys, width)),
            _plain(graph, (3 * width,)) if rng.random() < 0.5 else None,
        ],
        (batch, queries, width),
        num_heads=heads,
        scale=maybe(graph, 0.25, 0.3),
    )


@recipe("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(graph: RandomGraph, op_type: str) -> None:
    """Adds attention over a prompt, or over one token after others."""
    rng = graph.rng
    rotary = rng.random() < 0.5
    size = 16 if rotary else 8  # ONNX Runtime turns multiples of 16
    batch, shared = rng.randint(1, 2), rng.randint(1, 2)
    heads = shared * rng.randint(1, 3)
    is_prompt = rng.random() < 0.5
    new, past = (rng.randint(2, 5), 0) if is_prompt else (1, rng.randint(1, 5))
    total = new + past
    cache = (batch, shared, total, size)
    angles = [_plain(graph, (total + 2, size // 2)) for _ in range(2)] if rotary else [None, None]
    graph.emit_without_schema(
        op_type,
        [
            _plain(graph, (batch, new, heads * size)),
            _plain(graph, (batch, new, shared * size)),
            _plain(graph, (batch, new, shared * size)),
            *(_plain(graph, (batch, shared, past, size)) for _ in range(2)),
            graph.parameter(np.full(batch, total - 1, np.int32), as_input=0.5),
            graph.parameter(np.array(total, np.int32)),
            *angles,
        ],
        [(F32, (batch, new, heads * size)), (F32, cache), (F32, cache)],
        MICROSOFT,
        num_heads=heads,
        kv_num_heads=shared,
        do_rotary=int(rotary),
        rotary_interleaved=maybe(graph, rng.randint(0, 1)),
        scale=maybe(graph, 0.25, 0.3),
        softcap=maybe(graph, 2.0, 0.2),
    )


@recipe("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    batch, length, heads, pairs = rng.randint(1, 2), rng.randint(1, 5), rng.randint(1, 3), 4
    positions = length + rng.randint(0, 3)
    places = [rng.randrange(positions) for _ in range(batch * length)]
    ids = np.array(places, np.int64).reshape(batch, length)
    shape = (batch, length, heads * 2 * pairs)
    add(
        graph,
        op_type,
        [
            _plain(graph, shape),
            graph.parameter(ids, as_input=0.6),
            _plain(graph, (positions, pairs)),
            _plain(graph, (positions, pairs)),
        ],
        shape,
        interleaved=maybe(graph, rng.randint(0, 1)),
    )
