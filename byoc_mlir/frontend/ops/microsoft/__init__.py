"""Ops that ONNX Runtime's optimisers and exporters write, most of them of `com.microsoft`."""

from byoc_mlir.frontend.ops.microsoft import (
    activations,
    attention,
    blocks,
    embedding,
    group_query,
    multi_head,
    norm,
    products,
    quantized,
    quantized_products,
    quantized_recurrent,
    rotary,
)

__all__ = [
    "activations",
    "attention",
    "blocks",
    "embedding",
    "group_query",
    "multi_head",
    "norm",
    "products",
    "quantized",
    "quantized_products",
    "quantized_recurrent",
    "rotary",
]
