"""What the importer hands on: the module, its interface, and what became of every ONNX node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp

NodeStatus: TypeAlias = Literal["imported", "folded", "removed"]


@dataclass(frozen=True)
class TensorInfo:
    """An input or an output of a model; a dimension that is not bound is its symbol's name."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(str(size) for size in self.shape)}]"


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


@dataclass(frozen=True)
class ImportedModel:
    """An ONNX model as `relay` ops in `func.func @main`, inputs and outputs in the model's order."""

    module: ModuleOp
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    nodes: tuple[OnnxNode, ...]
