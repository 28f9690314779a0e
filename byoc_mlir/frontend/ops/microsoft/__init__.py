"""Ops that ONNX Runtime's optimisers and exporters write, most of them of `com.microsoft`."""
