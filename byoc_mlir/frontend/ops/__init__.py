"""One small function per ONNX op, in families. Importing this package registers all of them."""

from byoc_mlir.frontend.ops import (
    control,
    einsum,
    elementwise,
    image,
    index,
    nn,
    norm,
    quantize,
    rearrange,
    recurrent,
    reduce,
    signal,
    training,
    transform,
    vision,
    window,
)

__all__ = [
    "control",
    "einsum",
    "elementwise",
    "image",
    "index",
    "nn",
    "norm",
    "quantize",
    "rearrange",
    "recurrent",
    "reduce",
    "signal",
    "training",
    "transform",
    "vision",
    "window",
]
