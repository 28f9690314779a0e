"""Loops whose body is an executable, called once for each iteration."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from byoc_mlir.errors import ExecutionError, ExportError
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.profiled import TimedPart, TimedRun
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report, ReportRow

Named = Mapping[str, Array]
Changing = Mapping[str, set[int]]
"""By the name of what is carried, the axes that change from one iteration to the next."""


@dataclass(frozen=True)
class LoopNames:
    """What a `Loop` of ONNX and its body call values; an empty name is one that is not there."""

    trip_count: str
    condition: str
    initial: tuple[str, ...]
    number: str
    active: str
    states: tuple[str, ...]
    captured: tuple[str, ...]
    """What the body reads beside what it is given."""
    goes_on: str
    updates: tuple[str, ...]
    rows: tuple[str, ...]
    """What an iteration adds to what is collected."""
    results: tuple[str, ...]
    """What the loop gives: what is carried last, then what is collected."""


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
        self._lock = Lock()

    def report(self) -> Report:
        if self._body is None:
            return Report((self._row,))
        within = self._body.report()
        rows = [replace(row, node=f"{self._row.node}/body/{row.node}") for row in within]
        return replace(within, rows=(self._row, *rows))

    @property
    def program(self) -> Program:
        raise ExecutionError("a loop that is called iteration by iteration has no native code")

    def close(self) -> None:
        if self._body is not None:
            self._body.close()

    def _run(self, inputs: Inputs) -> dict[str, Array]:
        return self._iterated(inputs, lambda body, named: body.run(named))

    def timed(self, inputs: Inputs) -> TimedRun:
        parts: list[TimedPart] = []

        def timed(body: Executable, named: Named) -> Mapping[str, Any]:
            run = body.timed(named)
            parts.extend(run.parts)
            return run.outputs

        start = time.perf_counter()
        outputs = self._iterated(inputs, timed)
        return TimedRun(outputs, time.perf_counter() - start, tuple(parts))

    def _iterated(
        self, inputs: Inputs, run: Callable[[Executable, Named], Mapping[str, Any]]
    ) -> dict[str, Array]:
        """The outputs, each iteration run by `run`."""
        assert isinstance(inputs, Mapping)
        names = self._names
        values = {**self._constants, **inputs}
        most = int(values[names.trip_count].item()) if names.trip_count else None
        active = values[names.condition] if names.condition else np.array(True)
        captured = {name: values[name] for name in names.captured}
        states = [values[name] for name in names.initial]
        rows: list[list[Array]] = [[] for _ in names.rows]
        number = 0
        while active.all() and (most is None or number < most):
            carried = dict(zip(names.states, states, strict=True))
            given = {names.number: np.array(number), names.active: active, **carried, **captured}
            results = run(self._body_for(given), given)
            active = np.asarray(results[names.goes_on])
            states = [results[name] for name in names.updates]
            for collected, name in zip(rows, names.rows, strict=True):
                collected.append(results[name])
            number += 1
        made = [*states, *map(self._stacked, rows, names.results[len(states) :])]
        given = set(map(id, values.values()))
        values |= dict(zip(names.results, made, strict=True))
        return {
            name: values[name].copy() if id(values[name]) in given else values[name]
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

    def _exported(self, shapes: Mapping[str, Shape] | None) -> Program:
        raise ExportError("a loop that is called iteration by iteration cannot be exported")
