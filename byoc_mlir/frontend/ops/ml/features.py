"""Ops that prepare features."""

from __future__ import annotations

import math

from byoc_mlir.dialects.relay import index, logic
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import Value

DOMAIN = "ai.onnx.ml"


@register_op(DOMAIN, "ArrayFeatureExtractor")
def array_feature_extractor(context: NodeContext, data: Value, indices: Value) -> Value:
    places = arith.reshape(context, indices, [math.prod(indices.shape)])
    if data.rank == 1:
        data = arith.reshape(context, data, [1, *data.shape])
    return context.emit(index.TakeOp, data, places, axis=-1)


@register_op(DOMAIN, "Binarizer")
def binarizer(context: NodeContext, data: Value, *, threshold: float = 0.0) -> Value:
    above = context.emit(logic.GreaterOp, data, data.dtype.type(threshold))
    return cast(context, above, data.dtype)
