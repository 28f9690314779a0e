"""Ops of `ai.onnx.ml`: classical machine learning and the preparation of its features."""
