"""A model that is run node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from byoc_mlir.eager.ops import OPS
from byoc_mlir.eager.ops.constants import WeightedOp
from byoc_mlir.tensors import Array


class EagerModel:
    """Runs the nodes of a model one after the other.

    Args:
        model: checked, of ops that are known here, with all of its tensors in it.
    """

    def __init__(self, model: ModelProto):
        evaluator: Any = ReferenceEvaluator(model, new_ops=list(OPS))
        self._nodes: Sequence[OpRun] = evaluator.rt_nodes_
        self._constants: Mapping[str, Array] = evaluator.rt_inits_
        self._outputs = tuple(output.name for output in model.graph.output)
        for node in self._nodes:
            if isinstance(node, WeightedOp):
                node.prepare(self._constants)
        self._freed = _freed_after(self._nodes, {*self._outputs, *self._constants})

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, arrays of the caller's own.

        Raises:
            Exception: whatever an op raises; the model, or the inputs, may be wrong.
        """
        values: dict[str, Any] = {"": None, **self._constants, **inputs}
        with np.errstate(all="ignore"):
            for node, freed in zip(self._nodes, self._freed, strict=True):
                results = node.run(*(values[name] for name in node.input))
                values.update(zip(node.output, results, strict=False))  # optional ones are left out
                for name in freed:
                    del values[name]
        return {name: np.array(values[name], order="C") for name in self._outputs}


def _freed_after(nodes: Sequence[OpRun], kept: set[str]) -> list[list[str]]:
    """What no node reads after each node."""
    freed: list[list[str]] = []
    seen = {"", *kept}
    for node in reversed(nodes):
        last = dict.fromkeys(name for name in (*node.input, *node.output) if name not in seen)
        seen.update(last)
        freed.append(list(last))
    return freed[::-1]
