"""Language model whose cache of keys and values grows with each call."""

from __future__ import annotations

import math

import numpy as np
from onnx import ModelProto, TensorProto

from byoc_mlir.testing.networks.builder import GraphBuilder


def growing_decoder(
    *, seed: int = 0, width: int = 512, heads: int = 8, layers: int = 4, vocabulary: int = 8192
) -> ModelProto:
    """Builds a GPT-style decoder: `input_ids [batch, seq]` and each layer's `past.N.key` and
    `.value [batch, heads, past, size]` to `logits` and `present.N.key` and `.value`, which have
    `past + seq` positions.
    """
    return _GrowingDecoder(seed, width, heads, layers, vocabulary).build()


class _GrowingDecoder:
    def __init__(self, seed: int, width: int, heads: int, layers: int, vocabulary: int):
        self._b = GraphBuilder("growing_decoder", seed=seed, opset=18)
        self._width, self._heads = width, heads
        self._layers, self._vocabulary = layers, vocabulary

    def build(self) -> ModelProto:
        b = self._b
        ids = b.input("input_ids", ["batch", "seq"], TensorProto.INT64)
        shape = ["batch", self._heads, "past", self._width // self._heads]
        pasts = [
            tuple(b.input(f"past.{layer}.{name}", shape) for name in ("key", "value"))
            for layer in range(self._layers)
        ]
        before = self._size(pasts[0][0], 2)
        places = self._range(before, b.op("Add", before, self._size(ids, 1)))
        x = b.op("Gather", b.normal((self._vocabulary, self._width), 1.0, "wte"), ids)
        x = b.op("Add", x, b.op("Gather", b.normal((1024, self._width), 0.3, "wpe"), places))
        b.channels[x] = self._width
        for layer, past in enumerate(pasts):
            with b.scope(f"h.{layer}"):
                x = b.add(x, self._attention(b.layer_norm(x), past, places, layer))
                y = b.op("Relu", b.linear(b.layer_norm(x), 4 * self._width))
                x = b.add(x, b.linear(y, self._width))
        logits = b.linear(b.layer_norm(x), self._vocabulary, bias=False)
        b.output(logits, "logits", ["batch", "seq", self._vocabulary])
        return b.build()

    def _attention(self, x: str, past: tuple[str, ...], places: str, layer: int) -> str:
        b, size = self._b, self._width // self._heads
        query, *new = (
            b.transpose(b.reshape(b.linear(x, self._width), 0, 0, self._heads, size), 0, 2, 1, 3)
            for _ in range(3)
        )
        key, value = (
            self._extended(old, one, f"present.{layer}.{name}")
            for old, one, name in zip(past, new, ("key", "value"), strict=True)
        )
        scores = b.op("MatMul", query, b.transpose(key, 0, 1, 3, 2))
        scores = b.op("Div", scores, b.scalar(math.sqrt(size)))
        zero = b.constant(np.array(0, np.int64))
        known = self._range(zero, self._size(key, 2))
        seen = b.op("LessOrEqual", known, b.op("Unsqueeze", places, b.ints(1)))
        scores = b.op("Where", seen, scores, b.scalar(-1e9))
        y = b.transpose(b.op("MatMul", b.op("Softmax", scores, axis=-1), value), 0, 2, 1, 3)
        return b.linear(b.reshape(y, 0, 0, self._width), self._width)

    def _extended(self, past: str, new: str, name: str) -> str:
        """Appends the new keys or values to the past ones, as an output of the model."""
        b = self._b
        (value,) = b.ops("Concat", past, new, outputs=[name], axis=2)
        b.declare(value, ["batch", self._heads, "past + seq", self._width // self._heads])
        return value

    def _size(self, of: str, axis: int) -> str:
        b = self._b
        return b.op("Gather", b.op("Shape", of), b.constant(np.array(axis, np.int64)), axis=0)

    def _range(self, start: str, end: str) -> str:
        return self._b.op("Range", start, end, self._b.constant(np.array(1, np.int64)))
