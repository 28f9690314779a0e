"""Transformers: a vision encoder, a BERT-style encoder, a GPT-style decoder.

Each writes layer norm, gelu and attention the way one family of exporters does.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import ModelProto, TensorProto

from byoc_mlir.testing.networks.builder import GraphBuilder

_GELU_GAIN = 1.5
"""Gain of a layer behind gelu, which leaves 0.43 of the second moment of a standard normal value.
"""

_MASKED = float(np.finfo(np.float32).min)


def vit_tiny(
    *,
    seed: int = 0,
    batch: int = 1,
    image: int = 224,
    width: int = 192,
    heads: int = 3,
    layers: int = 12,
    classes: int = 1000,
) -> ModelProto:
    """Builds ViT-tiny, patches of 16 (Dosovitskiy et al., 2021), q, k and v from one matmul: `image
    [N, 3, H, W]` to `logits [N, classes]`.
    """
    b = GraphBuilder("vit_tiny", seed=seed)
    patches = (image // 16) ** 2
    x = b.input("image", [batch, 3, image, image])
    x = b.conv(x, width, 16, stride=16, padding=0, gain=1.0)
    x = b.transpose(b.reshape(x, batch, width, patches), 0, 2, 1)
    token = b.op("Expand", b.normal((1, 1, width), 1.0, "cls_token"), b.ints(batch, 1, width))
    x = b.op("Concat", token, x, axis=1)
    x = b.op("Add", x, b.normal((1, patches + 1, width), 0.5, "pos_embed"))
    b.channels[x] = width
    for index in range(layers):
        with b.scope(f"blocks.{index}"):
            x = b.add(x, _fused_attention(b, b.layer_norm(x), batch, patches + 1, heads))
            y = _gelu_erf(b, b.linear(b.layer_norm(x), 4 * width))
            x = b.add(x, b.linear(y, width, gain=_GELU_GAIN))
    x = b.op("Gather", b.layer_norm(x), b.constant(np.array(0, np.int64)), axis=1)
    b.output(b.gemm(x, classes), "logits", [batch, classes])
    return b.build()


def _fused_attention(b: GraphBuilder, x: str, batch: int, tokens: int, heads: int) -> str:
    """Adds attention whose projections are one matmul, split by `Split` and `Squeeze`."""
    width = b.channels[x]
    size = width // heads
    qkv = b.reshape(b.linear(x, 3 * width), batch, tokens, 3, heads, size)
    parts = b.ops("Split", b.transpose(qkv, 2, 0, 3, 1, 4), b.ints(1, 1, 1), outputs=3, axis=0)
    query, key, value = (b.op("Squeeze", part, b.ints(0)) for part in parts)
    query = b.op("Mul", query, b.scalar(1 / math.sqrt(size)))
    scores = b.op("MatMul", query, b.transpose(key, 0, 1, 3, 2))
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), value)
    return b.linear(b.reshape(b.transpose(y, 0, 2, 1, 3), batch, tokens, width), width)


def bert6(
    *,
    seed: int = 0,
    batch: int = 1,
    tokens: int = 48,
    vocabulary: int = 30522,
    width: int = 384,
    heads: int = 12,
    layers: int = 6,
) -> ModelProto:
    """Builds a BERT-style encoder of 6 layers, layer norm as separate ops: `input_ids,
    attention_mask, token_type_ids [N, T]` to `last_hidden_state [N, T, width]`.
    """
    b = GraphBuilder("bert6", seed=seed)
    ids = b.input("input_ids", [batch, tokens], TensorProto.INT64)
    mask = b.input("attention_mask", [batch, tokens], TensorProto.INT64)
    types = b.input("token_type_ids", [batch, tokens], TensorProto.INT64)
    bias = _mask_bias(b, mask)
    x = b.op("Gather", b.normal((vocabulary, width), 1.0, "word_embeddings"), ids)
    x = b.add(x, b.op("Gather", b.normal((2, width), 0.3, "type_embeddings"), types))
    x = b.op("Add", x, b.normal((1, tokens, width), 0.3, "position_embeddings"))
    b.channels[x] = width
    x = _decomposed_layer_norm(b, x)
    for index in range(layers):
        with b.scope(f"encoder.layer.{index}"):
            y = _masked_attention(b, x, bias, batch, tokens, heads)
            x = _decomposed_layer_norm(b, b.add(y, x))
            y = _gelu_erf(b, b.linear(x, 4 * width))
            x = _decomposed_layer_norm(b, b.add(b.linear(y, width, gain=_GELU_GAIN), x))
    b.output(x, "last_hidden_state", [batch, tokens, width])
    return b.build()


def _mask_bias(b: GraphBuilder, mask: str) -> str:
    """Converts a mask `[N, T]` of 0 and 1 to the addend `[N, 1, 1, T]` of the scores."""
    mask = b.op("Unsqueeze", b.op("Unsqueeze", mask, b.ints(1)), b.ints(2))
    mask = b.op("Cast", mask, to=TensorProto.FLOAT)
    return b.op("Mul", b.op("Sub", b.scalar(1.0), mask), b.scalar(_MASKED))


def _masked_attention(
    b: GraphBuilder, x: str, bias: str, batch: int, tokens: int, heads: int
) -> str:
    """Adds attention with three projections, the scale as a `Div` and the mask as an `Add`."""
    width = b.channels[x]
    size = width // heads

    def projected(*permutation: int) -> str:
        split = b.reshape(b.linear(x, width), batch, tokens, heads, size)
        return b.transpose(split, *permutation)

    query, key, value = projected(0, 2, 1, 3), projected(0, 2, 3, 1), projected(0, 2, 1, 3)
    scores = b.op("Div", b.op("MatMul", query, key), b.scalar(math.sqrt(size)))
    weights = b.op("Softmax", b.op("Add", scores, bias), axis=-1)
    y = b.transpose(b.op("MatMul", weights, value), 0, 2, 1, 3)
    return b.linear(b.reshape(y, batch, tokens, width), width)


def gpt4(
    *,
    seed: int = 0,
    batch: int = 1,
    tokens: int = 64,
    vocabulary: int = 8192,
    width: int = 512,
    heads: int = 8,
    layers: int = 4,
) -> ModelProto:
    """Builds a GPT-style decoder of 4 layers, with a causal mask and the tanh form of gelu:
    `input_ids [N, T]` to `logits [N, T, vocabulary]`.
    """
    b = GraphBuilder("gpt4", seed=seed, opset=18)
    ids = b.input("input_ids", [batch, tokens], TensorProto.INT64)
    causal = b.constant(np.tri(tokens, dtype=np.bool_)[None, None], "causal_mask")
    x = b.op("Gather", b.normal((vocabulary, width), 1.0, "wte"), ids)
    x = b.op("Add", x, b.normal((1, tokens, width), 0.3, "wpe"))
    b.channels[x] = width
    for index in range(layers):
        with b.scope(f"h.{index}"):
            x = b.add(x, _causal_attention(b, b.layer_norm(x), causal, batch, tokens, heads))
            y = _gelu_tanh(b, b.linear(b.layer_norm(x), 4 * width))
            x = b.add(x, b.linear(y, width, gain=_GELU_GAIN))
    logits = b.linear(b.layer_norm(x), vocabulary, bias=False)
    b.output(logits, "logits", [batch, tokens, vocabulary])
    return b.build()


def _causal_attention(
    b: GraphBuilder, x: str, causal: str, batch: int, tokens: int, heads: int
) -> str:
    """Adds attention whose one projection is split in its last axis, masked by `Where`."""
    width = b.channels[x]
    size = width // heads
    parts = b.ops("Split", b.linear(x, 3 * width), b.ints(width, width, width), outputs=3, axis=2)
    query, key, value = (
        b.transpose(b.reshape(part, batch, tokens, heads, size), 0, 2, 1, 3) for part in parts
    )
    scores = b.op("MatMul", query, b.transpose(key, 0, 1, 3, 2))
    scores = b.op("Div", scores, b.scalar(math.sqrt(size)))
    scores = b.op("Where", causal, scores, b.scalar(_MASKED))
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), value)
    return b.linear(b.reshape(b.transpose(y, 0, 2, 1, 3), batch, tokens, width), width)


def _decomposed_layer_norm(b: GraphBuilder, x: str) -> str:
    """Adds layer norm as exporters below opset 17 write it, with `ReduceMean`, `Pow` and `Sqrt`."""
    scale, bias = b.norm_parameters(b.channels[x])
    centred = b.op("Sub", x, b.op("ReduceMean", x, axes=[-1]))
    variance = b.op("ReduceMean", b.op("Pow", centred, b.scalar(2.0)), axes=[-1])
    deviation = b.op("Sqrt", b.op("Add", variance, b.scalar(1e-12)))
    return b.op("Add", b.op("Mul", b.op("Div", centred, deviation), scale), bias)


def _gelu_erf(b: GraphBuilder, x: str) -> str:
    erf = b.op("Erf", b.op("Div", x, b.scalar(math.sqrt(2.0))))
    return b.op("Mul", b.op("Mul", x, b.op("Add", erf, b.scalar(1.0))), b.scalar(0.5))


def _gelu_tanh(b: GraphBuilder, x: str) -> str:
    cubed = b.op("Mul", b.op("Pow", x, b.scalar(3.0)), b.scalar(0.044715))
    inner = b.op("Mul", b.op("Add", x, cubed), b.scalar(math.sqrt(2.0 / math.pi)))
    gate = b.op("Add", b.op("Tanh", inner), b.scalar(1.0))
    return b.op("Mul", b.op("Mul", x, b.scalar(0.5)), gate)
