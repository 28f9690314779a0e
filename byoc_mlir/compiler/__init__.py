"""The driver: from a model to an executable, stage by stage."""

from byoc_mlir.compiler.api import compile

__all__ = ["compile"]
