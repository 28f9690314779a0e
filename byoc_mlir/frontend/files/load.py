"""Reading an ONNX model from a path, bytes, or a `ModelProto`."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.files import read_file
from byoc_mlir.frontend.files.check import MAX_OPSET, check_model

__all__ = ["MAX_OPSET", "load_model"]


def load_model(
    source: str | Path | bytes | onnx.ModelProto, name: str = "the bytes"
) -> onnx.ModelProto:
    """Returns the checked model; `tensors.TensorReader` reads external data later.

    Before the checks, only the protobuf parser reads the model.

    Args:
        name: name of the model in errors, if `source` is bytes.

    Raises:
        InvalidModelError: the file cannot be read, is no ONNX model, or is inconsistent.
        LimitExceededError: the model has too many nodes, or is nested too deeply.
    """
    model = source if isinstance(source, onnx.ModelProto) else parse_model(source, name)
    check_model(model)
    return model


def parse_model(source: str | Path | bytes, name: str = "the bytes") -> onnx.ModelProto:
    """Parses a model without checking it.

    Raises:
        InvalidModelError: the file cannot be read, or is not an ONNX model.
    """
    data = source if isinstance(source, bytes) else read_file(source, InvalidModelError)
    what = name if isinstance(source, bytes) else f"'{source}'"
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise InvalidModelError(
            f"{what}: not an ONNX model ({len(data)} bytes); the file may be truncated, or only a"
            f" pointer to a large file: {error}"
        ) from error
    if not model.ir_version or not model.HasField("graph"):
        raise InvalidModelError(f"{what}: not an ONNX model: it has no IR version or no graph")
    return model
