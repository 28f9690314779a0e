"""Parts of a model that an interpreter runs, one node after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from byoc_mlir.errors import ExecutionError, ExportError
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.execution.node import LoadedNode, Named, Parts
from byoc_mlir.runtime.plan import Interpreted
from byoc_mlir.runtime.profiled import TimedPart
from byoc_mlir.runtime.program import Step
from byoc_mlir.runtime.report import Report
from byoc_mlir.tensors import Array

Interpreter: TypeAlias = Callable[[Named], Sequence[Array]]
"""Function that computes outputs for inputs by name. It is third-party code, and may raise
anything."""


class LoadedInterpreted(LoadedNode):
    """Part of a model with the interpreter that runs it."""

    def __init__(self, part: Interpreted, interpreter: Interpreter):
        self.inputs, self.outputs = (), part.outputs
        self._part = part
        self._interpreter = interpreter

    def run(self, inputs: Inputs, parts: Parts = None) -> dict[str, Any]:
        assert isinstance(inputs, dict)
        start = time.perf_counter()
        try:
            results = [_as_objects(result) for result in self._interpreter(inputs)]
            if len(results) != len(self.outputs):
                raise ValueError(f"{len(results)} results for {len(self.outputs)} outputs")
            found = dict(zip(self.outputs, results))  # noqa: B905, it takes longer
        except Exception as error:
            raise ExecutionError(f"the nodes on strings could not be run: {error}") from error
        if parts is not None:
            parts.append(_timed(self._part.report, time.perf_counter() - start))
        return found

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        pass  # there is nothing to compile

    def known(self) -> Interpreted:
        return self._part

    def exported(self, shapes: Mapping[str, Shape] | None) -> Interpreted:
        nodes = ", ".join(row.node for row in self._part.report)
        raise ExportError(
            f"its nodes on strings ({nodes}) run in Python; export a model of the others"
        )

    def close(self) -> None:
        pass  # there is nothing native


def _timed(report: Report, seconds: float) -> TimedPart:
    step = Step(tuple(row.node for row in report), "", "node by node, in Python")
    backend = next((row.placement for row in report), "host")
    return TimedPart(report, (step,), (seconds,), (0.0,), threads=1, home=backend)


def _as_objects(result: Any) -> Any:
    """Converts the strings of an array, or of a list of arrays, to objects."""
    if isinstance(result, list):
        return [_as_objects(item) for item in cast("list[Any]", result)]
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind == "U" else array
