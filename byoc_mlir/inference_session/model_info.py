"""Metadata of a model, its inputs and its outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, TypeProto, ValueInfoProto

from byoc_mlir.tensors import TensorInfo

_NAMES = {number: name.lower() for name, number in TensorProto.DataType.items()}
_TYPES_OF_NUMPY = {"float32": "float", "float64": "double", "object": "string"}


@dataclass(frozen=True)
class NodeArg:
    """Input or output; a dimension is a number, its symbol's name, or `None`."""

    name: str
    type: str
    """Type in ONNX's notation, such as `tensor(float)`."""
    shape: list[int | str | None]


@dataclass(frozen=True)
class ModelMetadata:
    """Metadata of the model in its file."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class ModelInfo:
    """Metadata of a session's model."""

    inputs: list[NodeArg]
    initialisers: list[NodeArg]
    """Inputs that have a default value."""
    outputs: list[NodeArg]
    metadata: ModelMetadata

    @staticmethod
    def of_proto(model: ModelProto) -> ModelInfo:
        """Returns the metadata of an ONNX model."""
        graph = model.graph
        known = {tensor.name for tensor in graph.initializer}
        known |= {sparse.values.name for sparse in graph.sparse_initializer}
        return ModelInfo(
            _arguments(value for value in graph.input if value.name not in known),
            _arguments(value for value in graph.input if value.name in known),
            _arguments(graph.output),
            ModelMetadata(
                model.producer_name,
                graph.name,
                model.domain,
                model.doc_string,
                graph.doc_string,
                model.model_version,
                {entry.key: entry.value for entry in model.metadata_props},
            ),
        )

    @staticmethod
    def of_tensors(inputs: Iterable[TensorInfo], outputs: Iterable[TensorInfo]) -> ModelInfo:
        """Returns the inputs and outputs of a compiled file."""
        return ModelInfo(
            [*map(_of_tensor, inputs)], [], [*map(_of_tensor, outputs)], ModelMetadata()
        )


def _of_tensor(info: TensorInfo) -> NodeArg:
    return NodeArg(info.name, type_name(info.dtype), list(info.shape))


def type_name(dtype: np.dtype[Any]) -> str:
    """Returns the type of a tensor in ONNX's notation, such as `tensor(float)`."""
    return f"tensor({_TYPES_OF_NUMPY.get(str(dtype), str(dtype))})"


def _arguments(values: Iterable[ValueInfoProto]) -> list[NodeArg]:
    return [NodeArg(value.name, _type(value.type), _shape(value.type)) for value in values]


def _type(proto: TypeProto) -> str:
    match proto.WhichOneof("value"):
        case "tensor_type":
            return f"tensor({_NAMES[proto.tensor_type.elem_type]})"
        case "sparse_tensor_type":
            return f"sparse_tensor({_NAMES[proto.sparse_tensor_type.elem_type]})"
        case "sequence_type":
            return f"seq({_type(proto.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({_type(proto.optional_type.elem_type)})"
        case "map_type":
            key = _NAMES[proto.map_type.key_type]
            return f"map({key},{_type(proto.map_type.value_type)})"
        case _:
            return ""


def _shape(proto: TypeProto) -> list[int | str | None]:
    """Returns the dimensions of a tensor, `None` for unknown ones; an empty list for other
    types."""
    if proto.WhichOneof("value") != "tensor_type":
        return []
    sizes: list[int | str | None] = []
    for dimension in proto.tensor_type.shape.dim:
        match dimension.WhichOneof("value"):
            case "dim_value" if dimension.dim_value >= 0:
                sizes.append(dimension.dim_value)
            case "dim_param":
                sizes.append(dimension.dim_param)
            case _:
                sizes.append(None)
    return sizes
