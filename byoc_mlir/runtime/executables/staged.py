"""Executables of models that run in several stages, since shapes depend on computed values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np

from byoc_mlir.dims import GREATEST_SIZE
from byoc_mlir.errors import ExecutionError, ExportError, InputValuesNeededError, NodeProblem
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.executable import Executable, Exporter, Step
from byoc_mlir.runtime.executables.recent import Recent
from byoc_mlir.runtime.profiled import TimedPart, TimedRun
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report
from byoc_mlir.runtime.staged_program import ProgramStage, StagedProgram
from byoc_mlir.tensors import MOST_SIZES, TensorInfo, Trim, item_name, item_names, size_input

Named = Mapping[str, Array]
_SIZE_TYPES = (np.dtype(np.int64), np.dtype(np.int32))
_Key: TypeAlias = tuple[int, tuple[str, ...]]
"""The number of a stage, and the arrays that say sizes to it."""


@dataclass(frozen=True)
class ExecutableStage:
    """One stage: what it reads by name, how it is compiled, what is done with its results."""

    inputs: tuple[str, ...]
    compile: Callable[[Named], Executable]
    """Called once, with the inputs of the first run, and those that say sizes; again where others
    say sizes."""
    trims: Mapping[str, Trim] = field(default_factory=dict[str, Trim])
    """What of its results does not count."""
    sizes: tuple[str, ...] = ()
    """Inputs whose values are sizes. As long as they can be, the stage takes arrays of such
    shapes in their place (`size_input`), so that one program serves them all."""

    def arrays(self, values: Named) -> Named:
        """What the stage reads, and for each size an array that says it."""
        named = {name: values[name] for name in self.inputs}
        if not self.sizes:
            return named
        sizes = {name: named[name] for name in self.sizes}
        return {**named, **_saying(sizes)} if all(map(_are_sizes, sizes.values())) else named


def taken(arrays: Named) -> Named:
    """What the program of a stage takes of its `arrays`: no values that others say."""
    said = {name for name in arrays if size_input(name, 0) in arrays}
    return {name: array for name, array in arrays.items() if name not in said} if said else arrays


def _are_sizes(array: Array) -> bool:
    if array.dtype not in _SIZE_TYPES or not 0 < array.size <= MOST_SIZES:
        return False
    numbers = array.reshape(-1).tolist()
    return min(numbers) >= 0 and max(numbers) <= GREATEST_SIZE


def _saying(sizes: Named) -> Named:
    return {
        size_input(name, number): np.empty((0, size), np.uint8)
        for name, array in sizes.items()
        for number, size in enumerate(array.reshape(-1).tolist())
    }


class StagedExecutable(Executable):
    """A chain of executables; each is compiled when the shapes of its inputs are known.

    Args:
        inputs: what the model takes, in order.
        outputs: the names of the model's outputs, in order.
        stages: all stages.
        first: the first stage, if it is compiled already.
        remake: makes the executable again, in the process that reads it from a pickle.
        exporter: as for `Executable`.
    """

    def __init__(
        self,
        inputs: Sequence[TensorInfo],
        outputs: Sequence[str],
        stages: Sequence[ExecutableStage],
        first: Executable | None = None,
        remake: Callable[[], Executable | None] | None = None,
        exporter: Exporter | None = None,
    ):
        super().__init__(inputs, outputs, exporter)
        self.stages = tuple(stages)
        self._remake = remake
        compiled = {} if first is None else {(0, ()): first}
        self._compiled = Recent[_Key, Executable](2 * len(stages), compiled)

    def report(self) -> Report:
        return Report.joined([stage.report() for stage in self._known().values()])

    @property
    def program(self) -> Program:
        return self._first().program

    def close(self) -> None:
        self._compiled.close()

    def _run(self, inputs: Inputs) -> dict[str, Array]:
        return self._through(inputs, lambda stage, named: stage.run(named))

    def timed(self, inputs: Inputs) -> TimedRun:
        parts: list[TimedPart] = []

        def timed(stage: Executable, named: Named) -> Mapping[str, Any]:
            run = stage.timed(named)
            parts.extend(run.parts)
            return run.outputs

        start = time.perf_counter()
        outputs = self._through(inputs, timed)
        return TimedRun(outputs, time.perf_counter() - start, tuple(parts))

    def _through(
        self, inputs: Inputs, run: Callable[[Executable, Named], Mapping[str, Any]]
    ) -> dict[str, Array]:
        """The outputs, each stage run by `run`."""
        arrays = self._arguments.checked(inputs)
        given = {info.name: array for info, array in zip(self.inputs, arrays, strict=True)}
        values = self._computed(given, run)
        values.update((name, values[name].copy()) for name in given if name in self.outputs)
        return {
            part: value for name in self.outputs for part, value in _parts_of(name, values).items()
        }

    def steps(self, inputs: Mapping[str, Array], changing: Sequence[str]) -> Step:
        given = dict(inputs)

        def step(arrays: Sequence[Array]) -> Sequence[Array]:
            given.update(zip(changing, arrays, strict=True))
            values = self._computed(given, lambda stage, named: stage.run(named))
            return [values[name] for name in self.outputs]

        return step

    def _computed(
        self, given: Named, run: Callable[[Executable, Named], Mapping[str, Any]]
    ) -> dict[str, Array]:
        """All that stages give, and what is given; each stage is run by `run`."""
        values = dict(given)
        for number, stage in enumerate(self.stages):
            arrays = stage.arrays(values)
            results = run(self._stage(number, arrays), taken(arrays))
            values.update(_trimmed(results, stage.trims) if stage.trims else results)
        return values

    def _warmup(self, shapes: Mapping[str, Shape]) -> None:
        if self.stages[0].sizes:
            reason = "its values are sizes in the model, which a run tells"
            sizes = self.stages[0].sizes
            problems = [NodeProblem(name, "input", "", reason) for name in sizes]
            raise InputValuesNeededError(problems, sizes)
        self._first().warmup(shapes)

    def _exported(self, shapes: Mapping[str, Shape] | None) -> StagedProgram:
        if shapes is not None:
            raise ExportError(
                f"{self._because()}: sizes are arguments of what is exported; leave shapes out"
            )
        stages = tuple(map(self._exported_stage, range(len(self.stages))))
        return StagedProgram(self.inputs, self.outputs, stages)

    def _exported_stage(self, number: int) -> ProgramStage:
        """A stage as it was compiled last."""
        stage = self.stages[number]
        keys = [key for key in self._compiled.known() if key[0] == number]
        if not keys:
            raise ExportError(
                f"{self._because()}; stage {number + 1} of {len(self.stages)} is compiled when the"
                " model runs: run it once on inputs of the usual kind, then export it; on the"
                " command line, give such inputs as --input FILE.npz"
            )
        part = self._compiled.known()[keys[-1]]
        return ProgramStage(
            stage.inputs,
            part.outputs,
            part.part_to_export(f"stage {number + 1} of {len(self.stages)}"),
            stage.trims,
            stage.sizes if keys[-1][1] else (),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickle keeps: the model, which is compiled again."""
        if self._compiled.is_closed:
            raise ExecutionError("the executable is closed; pickle it before, or compile again")
        if self._remake is None:
            raise ExportError(
                f"{self._because()}; it cannot be pickled: compile it in each process"
            )
        return self._remake, ()

    def _because(self) -> str:
        sizes = self.stages[0].sizes
        if sizes:
            return f"shapes in the model depend on the values of the inputs {', '.join(sizes)}"
        return "the model runs in stages, since shapes in it depend on computed values"

    def _first(self) -> Executable:
        """The first stage as it was compiled first."""
        (number, _), first = next(iter(self._known().items()))
        assert number == 0
        return first

    def _known(self) -> dict[_Key, Executable]:
        """The stages that are compiled, in their order."""
        found = self._compiled.known()
        if not found:
            raise ExecutionError("nothing is compiled yet: the first inputs tell shapes; call run")
        return dict(sorted(found.items()))

    def _stage(self, number: int, arrays: Named) -> Executable:
        stage = self.stages[number]
        key = number, tuple(sorted(arrays.keys() - set(stage.inputs))) if stage.sizes else ()
        return self._compiled.get(lambda: key, lambda: (key, stage.compile(arrays)))


def _parts_of(name: str, values: Mapping[str, Any]) -> dict[str, Array]:
    """Returns the tensors of an output by name: its own, or those of a sequence's items."""
    whole = values.get(name)
    if isinstance(whole, list):
        return {item_name(name, at): item for at, item in enumerate(cast("list[Array]", whole))}
    if whole is not None:
        return {name: whole}
    return {item: values[item] for item in item_names(name, values)}


def _trimmed(results: Named, trims: Mapping[str, Trim]) -> dict[str, Array]:
    """A stage's results with what does not count cut off."""
    kept = dict(results)
    for name, trim in trims.items():
        count = int(np.asarray(results[trim.count]).reshape(()))
        axis = trim.axis % results[name].ndim
        places = (slice(None),) * axis + (slice(count),)
        kept[name] = np.ascontiguousarray(results[name][places])
    return kept
