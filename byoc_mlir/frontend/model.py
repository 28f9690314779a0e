"""What the importer hands on: the module, its interface, and what became of every ONNX node."""

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
"""What a status means."""


@dataclass(frozen=True)
class OnnxNode:
    """What became of one ONNX node.

    `imported`: ops of the module are located at it; `folded`: its outputs were computed at import;
    `removed`: it hands its input on. `note` says more where there is more to say.
    """

    name: str
    op_type: str
    status: NodeStatus
    note: str = ""
    inputs: tuple[str, ...] = ()
    """The tensors that it reads, those that its subgraphs take from outside included."""
    outputs: tuple[str, ...] = ()

    @staticmethod
    def of(name: str, node: onnx.NodeProto, status: NodeStatus) -> OnnxNode:
        """A node with the note that its status deserves; `name` is what it is called here."""
        inputs = tuple(dict.fromkeys(read_names(node)))
        outputs = tuple(filter(None, node.output))
        return OnnxNode(name, node.op_type, status, NODE_NOTES[status], inputs, outputs)


@dataclass(frozen=True)
class ImportVariant:
    """What an import of a model with symbolic dimensions is right for."""

    guards: tuple[Guard, ...] = ()
    """Sizes that fulfil these."""
    reason: str = ""
    """Where it is right for one set of input shapes alone: why."""


@dataclass(frozen=True)
class ImportedModel:
    """An ONNX model as `relay` ops in `func.func @main`, inputs and outputs in its order."""

    module: ModuleOp
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    nodes: tuple[OnnxNode, ...]
    variant: ImportVariant | None = None
    """Of a model with symbolic dimensions."""
