"""One small function per ONNX op, in families. Importing this package registers all of them."""

from byoc_mlir.frontend.ops import elementwise, index, nn, reduce, transform, window

__all__ = ["elementwise", "index", "nn", "reduce", "transform", "window"]
