"""Ops of `ai.onnx.ml`: classical machine learning and what prepares its features."""
