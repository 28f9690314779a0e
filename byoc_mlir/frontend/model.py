"""Results of an import: the module, its interface, and a report row for each ONNX node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import onnx
from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.dims import Guard
from byoc_mlir.frontend.order import read_names
from byoc_mlir.tensors import TensorInfo

__all__ = ["NODE_NOTES", "ImportedModel", "NodeStatus", "OnnxNode", "TensorInfo"]

NodeStatus: TypeAlias = Literal["imported", "folded", "removed"]

NODE_NOTES: Mapping[NodeStatus, str] = {
    "imported": "",
    "folded": "its outputs are the same for all inputs",
    "removed": "its output is its input",
}
"""Explanation of each status."""


@dataclass(frozen=True)
class OnnxNode:
    """Report row of one ONNX node.

    The status is `imported` if ops of the module have the node's location, `folded` if its outputs
    were computed at import, `removed` if its output is its input. `note` adds details, if there are
    any.
    """

    name: str
    op_type: str
    status: NodeStatus
    note: str = ""
    inputs: tuple[str, ...] = ()
    """Tensors that the node reads, including those that its subgraphs capture."""
    outputs: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, node: onnx.NodeProto, status: NodeStatus) -> OnnxNode:
        """Returns the row of a node with the name `name`; the note comes from its status."""
        inputs = tuple(dict.fromkeys(read_names(node)))
        outputs = tuple(filter(None, node.output))
        return OnnxNode(name, node.op_type, status, NODE_NOTES[status], inputs, outputs)


@dataclass(frozen=True)
class ImportVariant:
    """Sizes for which an import of a model with symbolic dimensions is valid."""

    guards: tuple[Guard, ...] = ()
    """Conditions on the symbolic dimensions."""
    reason: str = ""
    """Reason why the import is valid for one set of input shapes only; "" if valid for more."""


@dataclass(frozen=True)
class ImportedModel:
    """ONNX model as `relay` ops in `func.func @main`, with its inputs and outputs in order."""

    module: ModuleOp
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    nodes: tuple[OnnxNode, ...]
    variant: ImportVariant | None = None
    """Validity, for a model with symbolic dimensions."""
