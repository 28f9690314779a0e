"""Reading ONNX models and importing them as `relay`."""

from byoc_mlir.frontend.importer import import_model
from byoc_mlir.frontend.load import load_model
from byoc_mlir.frontend.model import ImportedModel, OnnxNode, TensorInfo

__all__ = ["ImportedModel", "OnnxNode", "TensorInfo", "import_model", "load_model"]
