"""Reading ONNX models and importing them as `relay`; importers of a user's own ops."""

from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.carried import carry
from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.importer import import_model
from byoc_mlir.frontend.model import ImportedModel, OnnxNode, TensorInfo
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value

__all__ = [
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
