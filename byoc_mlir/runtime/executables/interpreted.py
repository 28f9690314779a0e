"""Executables that nothing was compiled for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from byoc_mlir.errors import ExecutionError, ExportError
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.profiled import TimedPart, TimedRun
from byoc_mlir.runtime.program import Array, Program, Step
from byoc_mlir.runtime.report import Report


def _as_objects(result: Any) -> Any:
    """Returns an array, or a list of arrays, whose strings are objects."""
    if isinstance(result, list):
        return [_as_objects(item) for item in cast("list[Any]", result)]
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind == "U" else array


class InterpretedExecutable(Executable):
    """A part of a model that is run node by node, as part of a `StagedExecutable`.

    Args:
        outputs: the names of what `function` gives, in order.
        function: the outputs for inputs by name.
        report: who runs the nodes and why.
    """

    def __init__(
        self,
        outputs: Sequence[str],
        function: Callable[[Mapping[str, Array]], Sequence[Array]],
        report: Report,
    ):
        super().__init__((), outputs)
        self._function = function
        self._report = report

    def report(self) -> Report:
        return self._report

    @property
    def program(self) -> Program:
        raise ExecutionError("nodes on strings have no native code")

    def close(self) -> None:
        pass

    def _run(self, inputs: Inputs) -> dict[str, Any]:
        assert isinstance(inputs, Mapping)
        try:
            results = list(map(_as_objects, self._function(inputs)))
        except Exception as error:  # a backend is foreign code
            raise ExecutionError(f"the nodes on strings could not be run: {error}") from error
        return dict(zip(self.outputs, results, strict=True))

    def timed(self, inputs: Inputs) -> TimedRun:
        start = time.perf_counter()
        outputs = self._run(inputs)
        seconds = time.perf_counter() - start
        nodes = tuple(row.node for row in self._report)
        backend = next((row.placement for row in self._report), "host")
        step = Step(nodes, "", "node by node, in Python")
        part = TimedPart(self._report, (step,), (seconds,), (0.0,), threads=1, home=backend)
        return TimedRun(outputs, seconds, (part,))

    def _warmup(self, shapes: Mapping[str, Shape]) -> None:
        pass  # there is nothing to compile

    def _exported(self, shapes: Mapping[str, Shape] | None) -> Program:
        nodes = ", ".join(row.node for row in self._report)
        raise ExportError(
            f"its nodes on strings ({nodes}) run in Python; export a model of the others"
        )
