"""Values of a graph, their types, and models of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.defs import OpSchema

from byoc_mlir.tensors import Array
from byoc_mlir.testing.samples.onnx_nodes.values import Dtype, Shape, Style

IR_VERSION = 10
ML, MICROSOFT = "ai.onnx.ml", "com.microsoft"
DOMAINS = {ML: 5, "ai.onnx.preview.training": 1, MICROSOFT: 1}
"""Opset versions of the domains other than the default one."""


class RejectedError(Exception):
    """Error of a node that is not valid; the graph is unchanged."""


@dataclass(frozen=True)
class Tensor:
    """Value of the graph."""

    name: str
    dtype: Dtype
    shape: Shape | None
    """Shape; `None` if it is known at run time only."""
    data: Array | None = None
    """Elements of a constant."""

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def sizes(self) -> Shape:
        """Returns the shape, which must be known."""
        if self.shape is None:
            raise RejectedError(f"the shape of {self.name} is not known")
        return self.shape

    def value_info(self) -> ValueInfoProto:
        element_type = helper.np_dtype_to_tensor_dtype(self.dtype)
        return helper.make_tensor_value_info(self.name, element_type, self.shape)


@dataclass(frozen=True)
class GraphInput:
    """Input of the model, with its value."""

    tensor: Tensor
    value: Array
    style: Style | None
    """Style of the value; `None` if the op that reads it needs this very value."""


def make_model(graph: onnx.GraphProto, opsets: Mapping[str, int]) -> onnx.ModelProto:
    """Returns a model that imports the domains of its nodes in these versions."""
    used = {node.domain for node in graph.node} | {""}
    imports = [helper.make_opsetid(name, opsets[name]) for name in sorted(used)]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def initializer_of(value: Tensor) -> TensorProto:
    assert value.data is not None
    return numpy_helper.from_array(value.data, value.name)


def allowed_dtypes(formal: OpSchema.FormalParameter) -> list[Dtype]:
    """Returns the types of a formal input or output for which the fuzzer generates tensors."""
    return [TENSOR_TYPES[name] for name in sorted(formal.types) if name in TENSOR_TYPES]


TENSOR_TYPES: dict[str, Dtype] = {
    f"tensor({name})": helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name.upper()))
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float", "double", "bfloat16"),
    )
}
"""NumPy types by ONNX's names of types."""

DTYPES: tuple[Dtype, ...] = tuple(TENSOR_TYPES.values())
