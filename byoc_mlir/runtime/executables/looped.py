"""Loops whose body is an executable, called once for each iteration."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from byoc_mlir.errors import ExecutionError, ExportError
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.executable import Executable, Step
from byoc_mlir.runtime.profiled import TimedPart, TimedRun
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.runtime.staged_program import LoopNames, LoopProgram
from byoc_mlir.runtime.system.forks import ForkSafeLock

Named = Mapping[str, Array]
Changing = Mapping[str, set[int]]
"""By the name of what is carried, the axes that change from one iteration to the next."""


class _Body:
    """What an iteration takes and gives, by place."""

    def __init__(self, executable: Executable, names: LoopNames):
        self.executable = executable
        outputs = executable.outputs
        self.goes_on = outputs.index(names.goes_on)
        self.updates = [outputs.index(name) for name in names.updates]
        self.rows = [outputs.index(name) for name in names.rows]
        shapes = {info.name: info.shape for info in executable.inputs}
        fixed = [
            ((place, axis), size)
            for place, name in enumerate(names.states)
            for axis, size in enumerate(shapes.get(name, ()))
            if isinstance(size, int)
        ]
        self._places = [place for place, _ in fixed]
        self._sizes = [size for _, size in fixed]

    def takes(self, states: Sequence[Array]) -> bool:
        """Whether what is carried has sizes that it was compiled for."""
        return [states[place].shape[axis] for place, axis in self._places] == self._sizes


class LoopedExecutable(Executable):
    """A `Loop` as part of a `StagedExecutable`. Its body is compiled when shapes are known.

    Args:
        row: the loop in reports.
        names: of its values.
        constants: what it is given that is known already, by name, and its outputs that are.
        outputs: the names of what it gives, in order.
        changing: axes of what is carried that are known to change.
        compile: compiles the body, for arrays as in its first iteration.
    """

    def __init__(
        self,
        row: ReportRow,
        names: LoopNames,
        constants: Named,
        outputs: Sequence[str],
        changing: Changing,
        compile: Callable[[Named, Changing], Executable],
    ):
        super().__init__((), outputs)
        self._row = row
        self._names = names
        self._constants = constants
        self._changing = {name: set(axes) for name, axes in changing.items()}
        self._compile = compile
        self._body: Executable | None = None
        self._lock = ForkSafeLock()

    def report(self) -> Report:
        if self._body is None:
            return Report((self._row,))
        within = self._body.report()
        rows = [replace(row, node=f"{self._row.node}/body/{row.node}") for row in within]
        return replace(within, rows=(self._row, *rows))

    @property
    def program(self) -> Program:
        if self._body is None:
            raise ExecutionError(f"the body of '{self._row.node}' is not compiled yet; call run")
        return self._body.program

    def close(self) -> None:
        if self._body is not None:
            self._body.close()

    def _run(self, inputs: Inputs) -> dict[str, Array]:
        def steps(body: Executable, given: Named, changing: Sequence[str]) -> Step:
            return body.steps(given, changing)

        return self._iterated(inputs, steps)

    def timed(self, inputs: Inputs) -> TimedRun:
        parts: list[TimedPart] = []

        def timed_steps(body: Executable, given: Named, changing: Sequence[str]) -> Step:
            def step(arrays: Sequence[Array]) -> Sequence[Array]:
                run = body.timed({**given, **dict(zip(changing, arrays, strict=True))})
                parts.extend(run.parts)
                return list(run.outputs.values())

            return step

        start = time.perf_counter()
        outputs = self._iterated(inputs, timed_steps)
        return TimedRun(outputs, time.perf_counter() - start, tuple(parts))

    def _iterated(
        self, inputs: Inputs, steps: Callable[[Executable, Named, Sequence[str]], Step]
    ) -> dict[str, Array]:
        """The outputs, each iteration run by one of `steps`."""
        assert isinstance(inputs, Mapping)
        names = self._names
        values = {**self._constants, **inputs}
        most = int(values[names.trip_count].item()) if names.trip_count else None
        goes_on = values[names.condition] if names.condition else np.array(True)
        captured = {name: values[name] for name in names.captured}
        states = [values[name] for name in names.initial]
        rows: list[list[Array]] = [[] for _ in names.rows]
        changing = (names.number, names.active, *names.states)
        body: _Body | None = None
        step: Step | None = None
        number = 0
        while goes_on.item() and (most is None or number < most):
            arrays = (np.array(number), goes_on, *states)
            if body is None or step is None or not body.takes(states):
                given = {**captured, **dict(zip(changing, arrays, strict=True))}
                body = _Body(self._body_for(given), names)
                step = steps(body.executable, given, changing)
            results = step(arrays)
            goes_on = results[body.goes_on]
            states = [results[place] for place in body.updates]
            for collected, place in zip(rows, body.rows, strict=True):
                collected.append(results[place])
            number += 1
        made = [*states, *map(self._stacked, rows, names.results[len(states) :])]
        before = set(map(id, values.values()))
        values |= dict(zip(names.results, made, strict=True))
        return {
            name: values[name].copy() if id(values[name]) in before else values[name]
            for name in self.outputs
        }

    def _stacked(self, rows: Sequence[Array], name: str) -> Array:
        if rows:
            return np.stack(rows)
        if not name:
            return np.empty(0)
        raise ExecutionError(
            f"no iteration of '{self._row.node}' ran, so that the shape of '{name}' is not known;"
            " inputs with which one runs are accepted"
        )

    def _body_for(self, given: Named) -> Executable:
        """The body; compiled again where something carried has changed along a further axis."""
        body = self._body
        if body is None or self._note_changes(body, given):
            with self._lock:
                if body is self._body:
                    self._body = self._compile(given, self._changing)
        assert self._body is not None
        return self._body

    def _note_changes(self, body: Executable, given: Named) -> bool:
        """Whether the body takes other sizes than these, of which it notes the axes."""
        found = False
        for info in body.inputs:
            for axis, size in enumerate(info.shape):
                if isinstance(size, int) and size != given[info.name].shape[axis]:
                    self._changing.setdefault(info.name, set()).add(axis)
                    found = True
        return found

    def _warmup(self, shapes: Mapping[str, Shape]) -> None:
        pass  # its shapes are known when it runs

    def _exported(self, shapes: Mapping[str, Shape] | None) -> LoopProgram:
        if self._body is None:
            raise ExportError(
                f"the body of '{self._row.node}' is compiled when an iteration of it runs; run the"
                " model on inputs for which one does, then export it"
            )
        return LoopProgram(
            self._row, self._names, self._constants, self._body.part_to_export(self._row.node)
        )
