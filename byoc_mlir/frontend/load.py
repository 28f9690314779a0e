"""Reading an ONNX model from a path, bytes, or a `ModelProto`."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from byoc_mlir.errors import InvalidModelError


def load_model(source: str | Path | bytes | onnx.ModelProto) -> onnx.ModelProto:
    """The model, without the data of external tensors.

    Raises:
        InvalidModelError: the bytes are not an ONNX model.
    """
    if isinstance(source, onnx.ModelProto):
        return source
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    try:
        return onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise InvalidModelError(f"not an ONNX model: {error}") from error
