"""One small function per ONNX op, in families, which `families` imports when they are needed."""
