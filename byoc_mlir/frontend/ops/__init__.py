"""One small function per ONNX op, in families. Importing this package registers all of them."""

from byoc_mlir.frontend.ops import elementwise, nn, reduce, transform, window

__all__ = ["elementwise", "nn", "reduce", "transform", "window"]
