"""Placement of each op of a partitioned module, as text."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.compiler.partition.report import report_rows
from byoc_mlir.frontend.model import OnnxNode
from byoc_mlir.runtime.report import Report


def placement_table(module: ModuleOp, nodes: Sequence[OnnxNode] = ()) -> str:
    """Returns one line for each ONNX node if the module comes from a model, else for each op."""
    return f"{Report(tuple(report_rows(module, nodes)))}\n"
