"""A model that is run node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from byoc_mlir.eager.folding import folded
from byoc_mlir.eager.onednn import use_threads
from byoc_mlir.eager.ops import OPS
from byoc_mlir.eager.ops.constants import PreparedOp
from byoc_mlir.tensors import Array


class EagerModel:
    """Runs the nodes of a model one after the other.

    Args:
        model: checked, of ops that are known here (`known_ops`).
        tensors: its initializers by name.
        threads: that a run uses.
    """

    def __init__(self, model: ModelProto, tensors: Mapping[str, Array], threads: int):
        nodes, self._tensors = folded(model.graph, tensors)
        evaluator: Any = ReferenceEvaluator(_of_nodes(model, nodes), new_ops=list(OPS))
        self._nodes: Sequence[OpRun] = evaluator.rt_nodes_
        self._threads = threads
        for node in self._nodes:
            if isinstance(node, PreparedOp):
                node.prepare(self._tensors)
        self._outputs = tuple(output.name for output in model.graph.output)
        self._freed = _freed_after(self._nodes, {*self._outputs, *self._tensors})

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, arrays of the caller's own.

        Raises:
            Exception: whatever an op raises; the model, or the inputs, may be wrong.
        """
        values: dict[str, Any] = {"": None, **self._tensors, **inputs}
        with use_threads(self._threads), np.errstate(all="ignore"):
            for node, freed in zip(self._nodes, self._freed, strict=True):
                results = node.run(*(values[name] for name in node.input))
                values.update(zip(node.output, results, strict=False))  # optional ones are left out
                for name in freed:
                    del values[name]
        return {name: np.array(values[name], order="C") for name in self._outputs}


def _of_nodes(model: ModelProto, nodes: Sequence[NodeProto]) -> ModelProto:
    """A model of nodes, else like another one, whose message nothing holds then."""
    graph, found = model.graph, GraphProto(name=model.graph.name)
    found.input.extend(graph.input)
    found.output.extend(graph.output)
    found.node.extend(nodes)
    opsets = model.opset_import
    return ModelProto(ir_version=model.ir_version, opset_import=opsets, graph=found)


def _freed_after(nodes: Sequence[OpRun], kept: set[str]) -> list[list[str]]:
    """What no node reads after each node."""
    freed: list[list[str]] = []
    seen = {"", *kept}
    for node in reversed(nodes):
        last = dict.fromkeys(name for name in (*node.input, *node.output) if name not in seen)
        seen.update(last)
        freed.append(list(last))
    return freed[::-1]
