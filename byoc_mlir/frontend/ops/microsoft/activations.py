"""Gelu and its variants: with an added bias, or with one half of the data as gate of the other
half.
"""

from __future__ import annotations

import math

from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import Value

DOMAIN = "com.microsoft"


@register_op(DOMAIN, "Gelu")
def gelu(context: NodeContext, data: Value) -> Value:
    scaled = arith.multiply(context, data, math.sqrt(0.5))
    gate = arith.add(context, context.emit(elementwise.ErfOp, scaled), 1.0)
    return arith.multiply(context, arith.multiply(context, data, 0.5), gate)


@register_op(DOMAIN, "FastGelu")
def fast_gelu(context: NodeContext, data: Value, bias: Value | None = None) -> Value:
    x = arith.biased(context, data, bias)
    cube = arith.multiply(context, arith.multiply(context, x, x), x)
    bent = arith.add(context, x, arith.multiply(context, cube, 0.044715))
    inner = arith.multiply(context, bent, math.sqrt(2 / math.pi))
    gate = arith.add(context, context.emit(elementwise.TanhOp, inner), 1.0)
    return arith.multiply(context, arith.multiply(context, x, 0.5), gate)


@register_op(DOMAIN, "BiasGelu")
def bias_gelu(context: NodeContext, data: Value, bias: Value) -> Value:
    return gelu(context, arith.biased(context, data, bias))


@register_op(DOMAIN, "QuickGelu")
def quick_gelu(context: NodeContext, data: Value, *, alpha: float = 1.702) -> Value:
    scaled = data if alpha == 1.0 else arith.multiply(context, data, alpha)
    return arith.multiply(context, data, context.emit(elementwise.SigmoidOp, scaled))


@register_op(DOMAIN, "BiasSplitGelu")
def bias_split_gelu(context: NodeContext, data: Value, bias: Value) -> Value:
    size = arith.size_along(data, -1)
    if size % 2:
        raise VerifyException(f"the last dimension has {size} elements, accepted are even numbers")
    x, half = arith.biased(context, data, bias), size // 2
    left = arith.section(context, x, -1, 0, half)
    right = arith.section(context, x, -1, half, size)
    return arith.multiply(context, left, gelu(context, right))


@register_op(DOMAIN, "BiasAdd")
def bias_add(context: NodeContext, data: Value, bias: Value, skip: Value) -> Value:
    return arith.add(context, arith.biased(context, data, bias), skip)
