"""Models beside their tensors, which lie in memory."""

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
"""Smaller tensors stay in the model: shapes and the like, which are looked at before it is
imported."""


@dataclass(frozen=True)
class ModelInMemory:
    """An ONNX model beside its large tensors, which are read where they are, not copied.

    Programs of such a model are not put into the cache.
    """

    proto: onnx.ModelProto
    """Tensors with external data name it by `location` alone."""
    arrays: Mapping[str, Array]
    """By location: C-contiguous, of the tensor's type and shape. They live as long as what is
    compiled from the model, and must not be changed while it is used. Those that belong to somebody
    else are `borrowed`."""


def borrowed(array: Array) -> Array:
    """The array, declared to be somebody else's: it is read where it is, and has no copy."""
    borrow(array)
    return array


def with_tensors_apart(model: ModelProto) -> ModelInMemory:
    """A checked model without its large tensors, which are copied: then nothing holds them but who
    uses them. Their locations are their content's, so that the model can be told from others.
    """
    arrays: dict[str, Array] = {}
    initializers = [_apart(tensor, arrays) for tensor in model.graph.initializer]
    if not arrays:
        return ModelInMemory(model, arrays)
    graph = GraphProto(**_fields(model.graph, initializer=initializers))
    return ModelInMemory(ModelProto(**_fields(model, graph=graph)), arrays)


def _apart(tensor: TensorProto, arrays: dict[str, Array]) -> TensorProto:
    """A tensor, its content in `arrays` if it is large."""
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
    """The fields of a message, some of them with other values."""
    return {**{field.name: value for field, value in message.ListFields()}, **others}
