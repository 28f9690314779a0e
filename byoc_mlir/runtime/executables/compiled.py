"""The executable of a program that is compiled already."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.destinations import run_into
from byoc_mlir.runtime.executable import Executable, Exporter
from byoc_mlir.runtime.instance import Instance
from byoc_mlir.runtime.profiled import TimedRun
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.system.forks import on_live_threads
from byoc_mlir.tensors import TensorInfo


class CompiledExecutable(Executable):
    """A program, linked and loaded."""

    def __init__(self, program: Program, exporter: Exporter | None = None):
        inputs = [TensorInfo(spec.name, spec.dtype, spec.shape) for spec in program.inputs]
        super().__init__(inputs, [spec.name for spec in program.outputs], exporter)
        self._instance = on_live_threads(Instance)(program)

    @property
    def program(self) -> Program:
        return self._instance.program

    def close(self) -> None:
        self._instance.close()

    def _run(self, inputs: Inputs) -> dict[str, Array]:
        arrays = self._arguments.as_they_are(inputs) or self._arguments.checked(inputs)
        values = self._instance.run(arrays)
        return dict(zip(self.outputs, values))  # noqa: B905, it takes as long

    def _run_into(self, inputs: Inputs, out: Mapping[str, Any]) -> dict[str, Array]:
        return run_into(self._instance, self._arguments.checked(inputs), out)

    def timed(self, inputs: Inputs) -> TimedRun:
        start = time.perf_counter()
        values, part = self._instance.timed(self._arguments.checked(inputs))
        outputs = dict(zip(self.outputs, values, strict=True))
        return TimedRun(outputs, time.perf_counter() - start, (part,))

    def _warmup(self, shapes: Mapping[str, Shape]) -> None:
        self._arguments.shapes(shapes)  # the only shapes there are

    def _exported(self, shapes: Mapping[str, Shape] | None) -> Program:
        if shapes is not None:
            self.warmup(shapes)
        return self.program

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle keeps: the program, in the form of a container with the checks of a file."""
        if self._instance.is_closed:
            raise ExecutionError("the executable is closed; pickle it before, or compile again")
        from byoc_mlir.runtime.files.pickled import reduced  # which makes executables

        return reduced(self.program, self._exporter)
