"""ONNX Runtime as a backend: the teaching example of handing regions to another engine."""
