"""Bring your own codegen: ONNX models partitioned between vendors' libraries and a host compiler."""

from byoc_mlir.backends import register_backend
from byoc_mlir.compiler import compile
from byoc_mlir.runtime import Executable, Report

__version__ = "0.1.0"

__all__ = ["Executable", "Report", "__version__", "compile", "register_backend"]
