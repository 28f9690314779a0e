"""Module of ONNX Runtime's interface that has its exceptions."""

from byoc_mlir.inference_session.capi import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]
