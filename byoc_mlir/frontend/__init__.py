"""Reader and importer of ONNX models into `relay`, and registration of a user's own ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byoc_mlir.frontend.builder import NodeContext
    from byoc_mlir.frontend.carried import carry
    from byoc_mlir.frontend.files.load import load_model
    from byoc_mlir.frontend.importer import import_model
    from byoc_mlir.frontend.model import ImportedModel, OnnxNode, TensorInfo
    from byoc_mlir.frontend.registry import register_op
    from byoc_mlir.frontend.value import Array, NodeRefused, Value

__all__ = [
    "Array",
    "ImportedModel",
    "NodeContext",
    "NodeRefused",
    "OnnxNode",
    "TensorInfo",
    "Value",
    "carry",
    "import_model",
    "load_model",
    "register_op",
]

_HOMES = {
    "NodeContext": "byoc_mlir.frontend.builder",
    "carry": "byoc_mlir.frontend.carried",
    "load_model": "byoc_mlir.frontend.files.load",
    "import_model": "byoc_mlir.frontend.importer",
    "register_op": "byoc_mlir.frontend.registry",
    **dict.fromkeys(("ImportedModel", "OnnxNode", "TensorInfo"), "byoc_mlir.frontend.model"),
    **dict.fromkeys(("Array", "NodeRefused", "Value"), "byoc_mlir.frontend.value"),
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use; reading a model does not load the compiler."""
    if name not in _HOMES:
        raise AttributeError(f"module 'byoc_mlir.frontend' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
