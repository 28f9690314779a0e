"""Model of the interpreter tier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto

from byoc_mlir.interpreter.folding import folded
from byoc_mlir.interpreter.nodes import Run, run_of
from byoc_mlir.interpreter.schemas import opset_of
from byoc_mlir.onednn.engine import openmp_threads
from byoc_mlir.runtime.system.signals import signals_held
from byoc_mlir.tensors import Array


class InterpretedModel:
    """Interpreter of a model, which runs its nodes one after the other.

    Args:
        model: a checked model, whose ops are supported (`tier_ops`).
        tensors: its initializers by name.
        threads: number of threads of a run.
    """

    def __init__(self, model: ModelProto, tensors: Mapping[str, Array], threads: int):
        nodes, self._tensors = folded(model.graph, tensors)
        opset = opset_of(model)
        self._threads = threads
        self._outputs = tuple(output.name for output in model.graph.output)
        runs = [run_of(node, opset, self._tensors) for node in nodes]
        self._steps = _steps(nodes, runs, {*self._outputs, *self._tensors})

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Returns the outputs by name, as arrays that belong to the caller.

        Raises:
            Exception: any error of an op; the model or the inputs may be wrong.
        """
        values: dict[str, Any] = {"": None, **self._tensors, **inputs}
        # signals wait: GEMMs may move the stack pointer, see docs/dev-notes/dnnl.md
        with openmp_threads(self._threads), signals_held(), np.errstate(all="ignore"):
            for step in self._steps:
                results = step.run(*[values[name] for name in step.inputs])
                values.update(zip(step.outputs, results))  # noqa: B905 - optional ones may be absent
                for name in step.freed:
                    del values[name]
        return {name: np.array(values[name], order="C") for name in self._outputs}


class _NodeCall(NamedTuple):
    """Call of a node."""

    run: Run
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    freed: tuple[str, ...]
    """Values without further users, which are freed after the call."""


def _steps(nodes: Sequence[NodeProto], runs: Sequence[Run], kept: set[str]) -> list[_NodeCall]:
    """Returns the calls of the nodes, in their order.

    Args:
        kept: values that are not freed.
    """
    steps: list[_NodeCall] = []
    seen = {"", *kept}
    for node, run in zip(reversed(nodes), reversed(runs), strict=True):
        inputs, outputs = tuple(node.input), tuple(node.output)
        last = dict.fromkeys(name for name in (*inputs, *outputs) if name not in seen)
        seen.update(last)
        steps.append(_NodeCall(run, inputs, outputs, tuple(last)))
    return steps[::-1]
