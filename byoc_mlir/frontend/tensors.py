"""`TensorProto`s as numpy arrays."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import numpy_helper

from byoc_mlir.frontend.value import Array


def tensor_array(tensor: onnx.TensorProto) -> Array:
    """The content of a tensor that keeps its data in the model."""
    return numpy_helper.to_array(tensor)


def model_tensors(model: onnx.ModelProto, folder: Path | None) -> dict[str, Array]:
    """The initializers of the graph by name; `folder` holds the external data."""
    return {tensor.name: tensor_array(tensor) for tensor in model.graph.initializer}
