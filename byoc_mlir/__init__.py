"""Bring your own codegen: ONNX models split between vendors' libraries and a host compiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byoc_mlir.backends import register_backend
    from byoc_mlir.compiler import compile
    from byoc_mlir.compiler.cross import cross_compile
    from byoc_mlir.compiler.user_passes import register_pass
    from byoc_mlir.inference_session import InferenceSession
    from byoc_mlir.limits import Limits
    from byoc_mlir.runtime import Executable, Report
    from byoc_mlir.runtime.load import load
    from byoc_mlir.torch import from_torch

__version__ = "0.1.0"

__all__ = [
    "Executable",
    "InferenceSession",
    "Limits",
    "Report",
    "__version__",
    "compile",
    "cross_compile",
    "from_torch",
    "load",
    "register_backend",
    "register_pass",
]

_HOMES = {
    "Executable": "byoc_mlir.runtime",
    "InferenceSession": "byoc_mlir.inference_session",
    "Limits": "byoc_mlir.limits",
    "Report": "byoc_mlir.runtime",
    "compile": "byoc_mlir.compiler",
    "cross_compile": "byoc_mlir.compiler.cross",
    "from_torch": "byoc_mlir.torch",
    "load": "byoc_mlir.runtime.load",
    "register_backend": "byoc_mlir.backends",
    "register_pass": "byoc_mlir.compiler.user_passes",
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use, so that tools do not pay for unused ones."""
    if name not in _HOMES:
        raise AttributeError(f"module 'byoc_mlir' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
