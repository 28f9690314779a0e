"""ONNX Runtime's Python interface on compiled models.

`import byoc_mlir.inference_session as ort` in the place of `import onnxruntime as ort` runs code
that was written for ONNX Runtime: see docs/inference-session.md.
"""

from typing import Any

from byoc_mlir.inference_session import capi
from byoc_mlir.inference_session.absent import absent, accepted
from byoc_mlir.inference_session.binding import IOBinding, OrtValue
from byoc_mlir.inference_session.model_info import ModelMetadata, NodeArg
from byoc_mlir.inference_session.options import (
    ExecutionMode,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
)
from byoc_mlir.inference_session.session import (
    InferenceSession,
    get_all_providers,
    get_available_providers,
)

__version__ = "1.32.0"
"""Version of ONNX Runtime whose interface this is."""

SessionIOBinding = IOBinding
disable_telemetry_events = enable_telemetry_events = accepted
set_default_logger_severity = set_default_logger_verbosity = set_default_logger_callback = accepted
set_seed = set_global_thread_pool_sizes = preload_dlls = print_debug_info = accepted


def get_device() -> str:
    """Returns `CPU`."""
    return "CPU"


def get_version_string() -> str:
    """Returns `__version__`."""
    return __version__


def get_build_info() -> str:
    """Returns the name and version of this package, in place of ONNX Runtime's."""
    return "byoc_mlir"


def __getattr__(name: str) -> Any:
    return absent("byoc_mlir.inference_session", name)


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
    "capi",
    "get_all_providers",
    "get_available_providers",
]
