"""The driver: from a model to an executable, in stages."""

from byoc_mlir.compiler.api import compile

__all__ = ["compile"]
