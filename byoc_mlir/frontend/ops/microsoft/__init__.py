"""Ops of ONNX Runtime's optimisers and exporters, most of them in `com.microsoft`."""
