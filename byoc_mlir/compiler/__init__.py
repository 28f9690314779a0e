"""The driver: from a model to an executable, stage by stage."""

from byoc_mlir.compiler.driver import compile
from byoc_mlir.compiler.options import CompileOptions

__all__ = ["CompileOptions", "compile"]
