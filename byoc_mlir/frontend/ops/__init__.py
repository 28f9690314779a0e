"""One small function per ONNX op, in families. Importing this package registers all of them."""

from byoc_mlir.frontend.ops import (
    control,
    elementwise,
    image,
    index,
    nn,
    norm,
    quantize,
    reduce,
    transform,
    window,
)

__all__ = [
    "control",
    "elementwise",
    "image",
    "index",
    "nn",
    "norm",
    "quantize",
    "reduce",
    "transform",
    "window",
]
