"""Layer normalisations with or without mean, with or without a skip connection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import reduce
from byoc_mlir.dialects.relay.base import normalize_axis
from byoc_mlir.dialects.relay.shape import agreeing
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.microsoft.activations import DOMAIN
from byoc_mlir.frontend.ops.norm import inverse_deviation, layer_normalization
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import Value

register_op(DOMAIN, "LayerNormalization")(layer_normalization)


@register_op("", "SimplifiedLayerNormalization")
@register_op(DOMAIN, "SimplifiedLayerNormalization")
def simplified_layer_normalization(
    context: NodeContext,
    data: Value,
    scale: Value,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Sequence[Value]:
    arith.size_along(data, axis)
    wide = cast(context, data, np.dtype(np.float32)) if data.dtype.itemsize < 4 else data
    square = arith.multiply(context, wide, wide)
    axes = range(normalize_axis(axis, data.rank), data.rank)
    mean = arith.reduced(context, reduce.MeanOp, square, axes)
    inverse = inverse_deviation(context, mean, epsilon)
    normal = cast(context, arith.multiply(context, wide, inverse), scale.dtype)
    return arith.multiply(context, normal, scale), inverse


@register_op(DOMAIN, "SkipLayerNormalization")
def skip_layer_normalization(
    context: NodeContext,
    data: Value,
    skip: Value,
    gamma: Value,
    beta: Value | None = None,
    bias: Value | None = None,
    *,
    epsilon: float = 1e-12,
) -> Sequence[Value | None]:
    total = _with_skip(context, data, skip, bias)
    return [*_three(layer_normalization(context, total, gamma, beta, epsilon=epsilon)), total]


@register_op(DOMAIN, "SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(
    context: NodeContext,
    data: Value,
    skip: Value,
    gamma: Value,
    bias: Value | None = None,
    *,
    epsilon: float = 1e-12,
) -> Sequence[Value | None]:
    total = _with_skip(context, data, skip, bias)
    output, inverse = simplified_layer_normalization(context, total, gamma, epsilon=epsilon)
    return output, None, inverse, total


def _three(outputs: Sequence[Value]) -> Sequence[Value | None]:
    """Returns output, mean and inverse standard deviation; `None` for each unused output."""
    return [*outputs, *[None] * (3 - len(outputs))]


def _with_skip(context: NodeContext, data: Value, skip: Value, bias: Value | None) -> Value:
    """Returns `data + skip + bias`; the first dimension of `skip` may be 1 or missing."""
    tail = skip.sizes[-2:] if skip.rank < data.rank or skip.sizes[0] == 1 else skip.sizes
    if data.rank not in (2, 3) or not agreeing(tail, data.sizes[-len(tail) :]):
        raise VerifyException(
            f"input has shape {list(data.sizes)} and skip {list(skip.sizes)}; accepted are"
            " [batch, sequence, hidden] or [tokens, hidden], and for skip the same, or without or"
            " with 1 as the first of three dimensions"
        )
    return arith.biased(context, arith.add(context, data, skip), bias)
