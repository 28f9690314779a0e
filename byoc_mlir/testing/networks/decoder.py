"""Language models with a cache of fixed size, as exporters for ONNX Runtime write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from onnx import ModelProto, TensorProto

from byoc_mlir.numpy_ops.blockwise import packed
from byoc_mlir.testing.networks.builder import Array, GraphBuilder

_MICROSOFT = "com.microsoft"
_EPSILON = 1e-6


@dataclass(frozen=True)
class DecoderSizes:
    """Sizes of a decoder; queries have `heads` heads, keys and values `shared_heads`."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    shared_heads: int = 2
    head_size: int = 16
    inner: int = 128
    vocabulary: int = 256
    capacity: int = 80
    """Number of tokens for which the cache has room."""
    block: int = 32
    """Number of elements that share a scale, in weights with few bits."""


def decoder(
    *,
    seed: int = 0,
    sizes: DecoderSizes | None = None,
    family: Literal["llama", "qwen"] = "llama",
    bits: int | None = None,
    accuracy_level: int = 0,
) -> ModelProto:
    """Builds a decoder with a cache of fixed size.

    Inputs: `input_ids [batch, new]`, `seqlens_k [batch]` (all tokens with the new ones, less one),
    `total_sequence_length []` and each layer's `past_key_values.N.key` and `.value [batch,
    shared_heads, capacity, head_size]`. Outputs: `logits` and `present.N.key` and `.value`.

    Args:
        family: `llama` has the rotary embedding in its attention; `qwen` has separate nodes for it,
            with the input `position_ids [batch, new]`, and biases for queries, keys, values.
        bits: bits of the matmuls' weights, 4 or 8; by default weights are f32.
        accuracy_level: of matmuls with weights of a few bits; 4 asks for data in int8.
    """
    graph = _Decoder(sizes or DecoderSizes(), family, bits, accuracy_level, seed)
    return graph.build()


class _Decoder:
    def __init__(
        self,
        sizes: DecoderSizes,
        family: Literal["llama", "qwen"],
        bits: int | None,
        accuracy_level: int,
        seed: int,
    ):
        self._sizes = sizes
        self._family = family
        self._bits = bits
        self._level = {"accuracy_level": accuracy_level} if accuracy_level else {}
        self._b = b = GraphBuilder(f"{family}_decoder", seed=seed)
        tokens = ["batch_size", "sequence_length"]
        self._ids = b.input("input_ids", tokens, TensorProto.INT64)
        self._lengths = b.input("seqlens_k", ["batch_size"], TensorProto.INT32)
        self._total = b.input("total_sequence_length", [], TensorProto.INT32)
        self._places = ""
        if family == "qwen":
            self._places = b.input("position_ids", tokens, TensorProto.INT64)
        with b.scope("model"):
            self._angles = [
                b.constant(table, name)
                for table, name in zip(_angles(sizes), ("cos_cache", "sin_cache"), strict=True)
            ]

    def build(self) -> ModelProto:
        b, sizes = self._b, self._sizes
        table = b.normal((sizes.vocabulary, sizes.width), 1.0, "embed_tokens")
        residual = b.op("Gather", table, self._ids)
        b.channels[residual] = sizes.width
        x = b.op("SimplifiedLayerNormalization", residual, self._scale(), **_NORM)
        for layer in range(sizes.layers):
            with b.scope(f"model.layers.{layer}"):
                x, residual = self._norm(residual, self._attention(x, layer))
                x, residual = self._norm(residual, self._feed_forward(x))
        logits = self._product(x, sizes.vocabulary, "lm_head")
        b.output(logits, "logits", ["batch_size", "sequence_length", sizes.vocabulary])
        return b.build()

    def _norm(self, residual: str, new: str) -> tuple[str, str]:
        """Adds `residual` and `new`; returns the normalised sum, and the sum."""
        outputs = ["norm", "", "", "sum"]
        found = self._b.ops(
            "SkipSimplifiedLayerNormalization",
            residual,
            new,
            self._scale(),
            outputs=outputs,
            domain=_MICROSOFT,
            epsilon=_EPSILON,
        )
        return found[0], found[3]

    def _scale(self) -> str:
        return self._b.uniform((self._sizes.width,), 0.7, 1.2, "layernorm.weight")

    def _attention(self, x: str, layer: int) -> str:
        b, sizes = self._b, self._sizes
        widths = {"q": sizes.heads, "k": sizes.shared_heads, "v": sizes.shared_heads}
        parts = {
            name: self._product(x, count * sizes.head_size, f"{name}_proj")
            for name, count in widths.items()
        }
        if self._family == "qwen":
            for name, part in parts.items():
                bias = b.normal((b.channels[part],), 0.1, f"{name}_proj.bias")
                parts[name] = b.op("Add", part, bias)
            for name in "qk":
                parts[name] = b.op(
                    "RotaryEmbedding",
                    *(parts[name], self._places, *self._angles),
                    domain=_MICROSOFT,
                    num_heads=widths[name],
                )
        shape = ["batch_size", sizes.shared_heads, sizes.capacity, sizes.head_size]
        past = [b.input(f"past_key_values.{layer}.{name}", shape) for name in ("key", "value")]
        present = [f"present.{layer}.{name}" for name in ("key", "value")]
        inside = self._family == "llama"
        y, *_ = b.ops(
            "GroupQueryAttention",
            *(*parts.values(), *past, self._lengths, self._total),
            *(self._angles if inside else ()),
            outputs=["attention", *present],
            domain=_MICROSOFT,
            num_heads=sizes.heads,
            kv_num_heads=sizes.shared_heads,
            do_rotary=int(inside),
        )
        for name in present:
            b.declare(name, shape)
        b.channels[y] = sizes.heads * sizes.head_size
        return self._product(y, sizes.width, "o_proj")

    def _feed_forward(self, x: str) -> str:
        """Adds a SwiGLU feed-forward block."""
        gate, up = (self._product(x, self._sizes.inner, name) for name in ("gate_proj", "up_proj"))
        y = self._b.op("Mul", self._b.swish(gate), up)
        return self._product(y, self._sizes.width, "down_proj")

    def _product(self, x: str, features: int, name: str) -> str:
        if self._bits is None:
            return self._b.linear(x, features, bias=False)
        b, block = self._b, self._sizes.block
        width = b.channels[x]
        weight = b.rng.standard_normal((features, width), dtype=np.float32) / np.sqrt(width)
        codes, scales = quantised(weight.astype(np.float32), self._bits, block)
        y = b.op(
            "MatMulNBits",
            x,
            b.constant(codes, f"{name}.qweight"),
            b.constant(scales, f"{name}.scales"),
            domain=_MICROSOFT,
            K=width,
            N=features,
            bits=self._bits,
            block_size=block,
            **self._level,
        )
        b.channels[y] = features
        return y


_NORM = {"axis": -1, "epsilon": _EPSILON, "stash_type": 1}


def _angles(sizes: DecoderSizes) -> tuple[Array, Array]:
    """Returns the cosines and sines of each position."""
    half = sizes.head_size // 2
    frequencies = 10000.0 ** -(np.arange(half) / half)
    angles = np.arange(sizes.capacity)[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def quantised(weight: Array, bits: int, block: int) -> tuple[Array, Array]:
    """Quantises a weight `[features, width]` for MatMulNBits: codes `[features, blocks, bytes]` and
    scales `[features, blocks]`, with the zero point in the middle.
    """
    features, width = weight.shape
    middle = 2 ** (bits - 1)
    blocks = np.pad(weight, ((0, 0), (0, -width % block))).reshape(features, -1, block)
    scales = np.abs(blocks).max(-1) / (middle - 1) + np.float32(1e-8)
    codes = (np.rint(blocks / scales[..., None]) + middle).astype(np.uint8)
    return packed(codes, bits), scales.astype(np.float32)
