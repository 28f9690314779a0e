"""Embedding of a BERT model: words, positions and segments, summed and normalised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from byoc_mlir.dialects.relay import index, logic, reduce
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.heads import expect_rank, expect_shape
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.ops.norm import layer_normalization
from byoc_mlir.frontend.ops.quantize import dequantize_linear
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value


@register_op(DOMAIN, "EmbedLayerNormalization")
def embed_layer_normalization(
    context: NodeContext,
    input_ids: Value,
    segment_ids: Value | None,
    word_embedding: Value,
    position_embedding: Value,
    segment_embedding: Value | None,
    gamma: Value,
    beta: Value,
    mask: Value | None = None,
    position_ids: Value | None = None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> Sequence[Value | None]:
    """Imports EmbedLayerNormalization; ignores `mask_index_type`, a hint for type inference."""
    expect_rank(input_ids, "input_ids", 2)
    batch, sequence = input_ids.sizes
    if (segment_ids is None) != (segment_embedding is None):
        raise NodeRefused("segment_ids and segment_embedding must be given together")
    total = arith.add(
        context,
        context.emit(index.TakeOp, word_embedding, input_ids, axis=0),
        _positions(context, position_embedding, position_ids, batch, sequence),
    )
    if segment_ids is not None and segment_embedding is not None:
        expect_shape(segment_ids, "segment_ids", input_ids.sizes)
        segments = context.emit(index.TakeOp, segment_embedding, segment_ids, axis=0)
        total = arith.add(context, total, segments)
    output = layer_normalization(context, total, gamma, beta, epsilon=epsilon)[0]
    return output, _count(context, mask, batch) if context.wants(1) else None, total


def _positions(
    context: NodeContext, embedding: Value, ids: Value | None, batch: Size, sequence: Size
) -> Value:
    if ids is None:
        return arith.section(context, embedding, 0, 0, sequence)
    expect_shape(ids, "position_ids", (batch, sequence), (1, sequence))
    return context.emit(index.TakeOp, embedding, ids, axis=0)


def _count(context: NodeContext, mask: Value | None, batch: Size) -> Value:
    """Returns the number of words that the mask keeps in each row, 0 without a mask."""
    kind = np.dtype(np.int32)
    if mask is None:
        return arith.broadcast(context, context.constant(np.zeros(1, kind)), [batch])
    kept = cast(context, context.emit(logic.EqualOp, mask, mask.dtype.type(1)), kind)
    return arith.reduced(context, reduce.SumOp, kept, [1], keepdims=False)


@register_op(DOMAIN, "QEmbedLayerNormalization")
def quantized_embed_layer_normalization(
    context: NodeContext,
    input_ids: Value,
    segment_ids: Value | None,
    word_embedding: Value,
    position_embedding: Value,
    segment_embedding: Value | None,
    gamma: Value,
    beta: Value,
    mask: Value | None,
    word_scale: Value,
    position_scale: Value,
    segment_scale: Value | None,
    gamma_scale: Value,
    beta_scale: Value,
    word_zero_point: Value,
    position_zero_point: Value,
    segment_zero_point: Value | None,
    gamma_zero_point: Value,
    beta_zero_point: Value,
    *,
    epsilon: float = 1e-12,
) -> Sequence[Value | None]:
    segments = None
    if segment_embedding is not None:
        if segment_scale is None or segment_zero_point is None:
            raise NodeRefused("segment_embedding is given without its scale and zero point")
        segments = dequantize_linear(context, segment_embedding, segment_scale, segment_zero_point)
    output, count, _ = embed_layer_normalization(
        context,
        input_ids,
        segment_ids,
        dequantize_linear(context, word_embedding, word_scale, word_zero_point),
        dequantize_linear(context, position_embedding, position_scale, position_zero_point),
        segments,
        dequantize_linear(context, gamma, gamma_scale, gamma_zero_point),
        dequantize_linear(context, beta, beta_scale, beta_zero_point),
        mask,
        epsilon=epsilon,
    )
    return output, count
