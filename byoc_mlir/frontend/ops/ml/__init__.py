"""Ops of `ai.onnx.ml`: classical machine learning and what prepares its features."""

from byoc_mlir.frontend.ops.ml import features, linear, trees

__all__ = ["features", "linear", "trees"]
