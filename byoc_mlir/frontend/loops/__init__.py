"""Rewrites of ONNX loops, after which trip counts and sizes are known before the loops run."""
