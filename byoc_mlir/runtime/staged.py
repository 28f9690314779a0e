"""Executables of models that run in several stages, since shapes depend on computed values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byoc_mlir.boundary import boundary
from byoc_mlir.errors import ExecutionError, ExportError
from byoc_mlir.runtime.executable import Executable, Inputs, Shape
from byoc_mlir.runtime.forks import ForkSafeLock
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report
from byoc_mlir.tensors import TensorInfo

Named = Mapping[str, Array]


@dataclass(frozen=True)
class ExecutableStage:
    """One stage: what it reads by name, how it is compiled, what is done with its results."""

    inputs: tuple[str, ...]
    compile: Callable[[Named], Executable]
    """Called once, with the inputs of the first run."""
    trim: Callable[[Named], dict[str, Array]]


class StagedExecutable(Executable):
    """A chain of executables; each is compiled when the shapes of its inputs are known.

    Args:
        inputs: what the model takes, in order.
        outputs: the names of the model's outputs, in order.
        stages: all stages.
        first: the first stage, if it is compiled already.
    """

    def __init__(
        self,
        inputs: Sequence[TensorInfo],
        outputs: Sequence[str],
        stages: Sequence[ExecutableStage],
        first: Executable | None = None,
    ):
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self._names = {info.name: index for index, info in enumerate(self.inputs)}
        self._stages = tuple(stages)
        self._executables: list[Executable | None] = [first, *[None] * (len(stages) - 1)]
        self._lock = ForkSafeLock()
        self._closed = False

    @boundary("run")
    def run(self, inputs: Inputs) -> dict[str, Array]:
        arrays = self._checked(inputs)
        values = dict(zip(self._names, arrays, strict=True))
        for number, stage in enumerate(self._stages):
            named = {name: values[name] for name in stage.inputs}
            values.update(stage.trim(self._executable(number, named).run(named)))
        return {
            name: values[name].copy() if name in self._names else values[name]
            for name in self.outputs
        }

    @boundary("warmup")
    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        """Compiles the first stage; the others wait for the shapes that it gives."""
        self._first().warmup(shapes)

    def _fixed(self, shapes: Mapping[str, Shape] | None) -> Program:
        raise ExportError(
            f"the model runs in {len(self._stages)} stages, since shapes in it depend on computed"
            " values; it cannot be exported"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise ExportError(
            f"the model runs in {len(self._stages)} stages, since shapes in it depend on computed"
            " values; it cannot be pickled: compile it in each process"
        )

    def report(self) -> Report:
        """Where every ONNX node of the stages compiled so far went and why."""
        self._first()
        reports = [executable.report() for executable in self._compiled()]
        composites: dict[str, int] = {}
        for report in reports:
            for name, count in report.composites.items():
                composites[name] = composites.get(name, 0) + count
        return Report(
            tuple(row for report in reports for row in report.rows),
            tuple(warning for report in reports for warning in report.warnings),
            composites,
            reports[0].compile_seconds,
            reports[0].pass_seconds,
        )

    @property
    def program(self) -> Program:
        """The first stage's program."""
        return self._first().program

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for executable in self._compiled():
                executable.close()

    def _first(self) -> Executable:
        first = self._executables[0]
        if first is None:
            raise ExecutionError("nothing is compiled yet: the first inputs tell shapes; call run")
        return first

    def _compiled(self) -> list[Executable]:
        return [executable for executable in self._executables if executable is not None]

    def _executable(self, number: int, arrays: Named) -> Executable:
        with self._lock:
            if self._closed:
                raise ExecutionError("the executable is closed; compile the model again")
            found = self._executables[number]
            if found is None:
                found = self._stages[number].compile(arrays)
                self._executables[number] = found
            return found
