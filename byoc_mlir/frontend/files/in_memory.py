"""Models with large tensors in memory, outside the `ModelProto`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import GraphProto, ModelProto, StringStringEntryProto, TensorProto, numpy_helper

from byoc_mlir.dialects.relay.constant import Weight, borrow
from byoc_mlir.frontend.files.tensor_check import payload_bytes
from byoc_mlir.frontend.value import Array

_LEAST_BYTES = 1 << 12
"""Minimum bytes of a tensor that is kept in memory apart from the model; smaller ones may be
shapes."""


@dataclass(frozen=True)
class ModelInMemory:
    """ONNX model whose large tensors are numpy arrays, which are read in place and not copied.

    Programs of such a model are not cached.
    """

    proto: onnx.ModelProto
    """Model; its tensors with external data name it by `location` alone."""
    arrays: Mapping[str, Array]
    """Arrays by location: C-contiguous, of the tensor's type and shape.

    They live as long as anything compiled from the model, and must not change while it is used.
    Arrays that belong to the caller are `borrowed`.
    """


def borrowed(array: Array) -> Array:
    """Marks an array as owned by the caller, so that it is read in place and never copied; returns
    the array.
    """
    borrow(array)
    return array


def with_tensors_apart(model: ModelProto) -> ModelInMemory:
    """Returns a checked model whose large tensors are copied into arrays.

    So the memory of an array is freed after its last use. A location is the digest of the content,
    so that the files of different models have different locations.
    """
    arrays: dict[str, Array] = {}
    initializers = [_apart(tensor, arrays) for tensor in model.graph.initializer]
    if not arrays:
        return ModelInMemory(model, arrays)
    graph = GraphProto(**_fields(model.graph, initializer=initializers))
    return ModelInMemory(ModelProto(**_fields(model, graph=graph)), arrays)


def _apart(tensor: TensorProto, arrays: dict[str, Array]) -> TensorProto:
    """Moves a large tensor's content to `arrays`; returns a tensor that refers to it as external
    data.
    """
    is_apart = tensor.data_location == TensorProto.EXTERNAL
    if is_apart or tensor.data_type == TensorProto.STRING or payload_bytes(tensor) < _LEAST_BYTES:
        return tensor
    weight = Weight.of(tensor.name, numpy_helper.to_array(tensor))
    location = f"content:{weight.digest}"  # no file's, as a path has no colon
    arrays[location] = weight.data
    placed = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    placed.data_location = TensorProto.EXTERNAL
    placed.external_data.append(StringStringEntryProto(key="location", value=location))
    return placed


def _fields(message: ModelProto | GraphProto, **others: object) -> dict[str, Any]:
    """Returns the fields of a message, with some values replaced."""
    return {**{field.name: value for field, value in message.ListFields()}, **others}
