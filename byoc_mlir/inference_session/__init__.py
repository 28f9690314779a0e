"""ONNX Runtime's Python interface on compiled models.

`import byoc_mlir.inference_session as ort` in the place of `import onnxruntime as ort` runs code
that was written for ONNX Runtime: see docs/inference-session.md.
"""

from byoc_mlir.inference_session.binding import IOBinding, OrtValue
from byoc_mlir.inference_session.model_info import ModelMetadata, NodeArg
from byoc_mlir.inference_session.options import (
    ExecutionMode,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from byoc_mlir.inference_session.session import InferenceSession, get_available_providers

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_available_providers",
]
