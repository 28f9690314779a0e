"""Loops whose body runs once for each iteration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from byoc_mlir.errors import ExecutionError, ExportError, InvalidInputError
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.execution.node import LoadedNode, Named, Parts, Step, exported_part
from byoc_mlir.runtime.plan import Loop, LoopNames
from byoc_mlir.runtime.program import Array

Changing: TypeAlias = Mapping[str, set[int]]
"""Axes that change from one iteration to the next, by the name of the carried value."""
BodyCompiler: TypeAlias = Callable[[Named, Changing], LoadedNode]
"""Function that compiles a body, given the arrays of the first iteration."""


class _Body:
    """Positions of an iteration's inputs and outputs."""

    def __init__(self, node: LoadedNode, names: LoopNames):
        self._node = node
        outputs = node.outputs
        self.goes_on = outputs.index(names.goes_on)
        self.updates = [outputs.index(name) for name in names.updates]
        self.rows = [outputs.index(name) for name in names.rows]
        shapes = {info.name: info.shape for info in node.inputs}
        fixed = [
            ((place, axis), size)
            for place, name in enumerate(names.states)
            for axis, size in enumerate(shapes.get(name, ()))
            if isinstance(size, int)
        ]
        self._places = [place for place, _ in fixed]
        self._sizes = [size for _, size in fixed]

    def takes(self, states: Sequence[Array]) -> bool:
        """True if the carried values have the sizes that the body was compiled for."""
        return [states[place].shape[axis] for place, axis in self._places] == self._sizes

    def steps(self, given: Named, changing: Sequence[str], parts: Parts) -> Step:
        """Returns a function that runs one iteration; the arguments are as for
        `LoadedNode.steps`.
        """
        if parts is None:
            return self._node.steps(given, changing)

        def step(arrays: Sequence[Array]) -> Sequence[Array]:
            named = {**given, **dict(zip(changing, arrays, strict=True))}
            return list(self._node.run(named, parts).values())

        return step


class LoadedLoop(LoadedNode):
    """Loop with its body, which is compiled when shapes are known.

    Args:
        loop: the loop of the plan, without the body.
        changing: axes of carried values whose sizes are known to change.
        compile: function that compiles the body; None if nothing can be compiled, as for a plan
            from a file.
        body: the body, if it is compiled already.
    """

    def __init__(
        self,
        loop: Loop,
        changing: Changing,
        compile: BodyCompiler | None,
        body: LoadedNode | None = None,
    ):
        self.inputs, self.outputs = (), loop.outputs
        self._loop = loop
        self._changing = {name: set(axes) for name, axes in changing.items()}
        self._compile = compile
        self._body = body
        self._lock = ForkSafeLock()

    def run(self, inputs: Inputs, parts: Parts = None) -> dict[str, Array]:
        assert isinstance(inputs, Mapping)
        names = self._loop.names
        values = {**self._loop.constants, **inputs}
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
                step = body.steps(given, changing, parts)
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

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        pass  # its shapes are known when it runs

    def known(self) -> Loop:
        return self._loop if self._body is None else replace(self._loop, body=self._body.known())

    def exported(self, shapes: Mapping[str, Shape] | None) -> Loop:
        node = self._loop.row.node
        if self._body is None:
            raise ExportError(
                f"the body of '{node}' is compiled when an iteration of it runs; run the model on"
                " inputs for which one does, then export it"
            )
        return replace(self._loop, body=exported_part(self._body, node))

    def close(self) -> None:
        if self._body is not None:
            self._body.close()

    def _stacked(self, rows: Sequence[Array], name: str) -> Array:
        if rows:
            return np.stack(rows)
        if not name:
            return np.empty(0)
        raise ExecutionError(
            f"no iteration of '{self._loop.row.node}' ran, so that the shape of '{name}' is not"
            " known; inputs with which one runs are accepted"
        )

    def _body_for(self, given: Named) -> LoadedNode:
        """Returns the body; compiles it again if the size of a further axis changes."""
        body = self._body
        if body is None or self._note_changes(body, given):
            with self._lock:
                if body is self._body:
                    self._body = self._compiled(given)
        assert self._body is not None
        return self._body

    def _note_changes(self, body: LoadedNode, given: Named) -> bool:
        """True if the sizes of carried values differ from the sizes that the body was compiled for;
        records the axes.
        """
        found = False
        for info in body.inputs:
            for axis, size in enumerate(info.shape):
                if isinstance(size, int) and size != given[info.name].shape[axis]:
                    self._changing.setdefault(info.name, set()).add(axis)
                    found = True
        return found

    def _compiled(self, given: Named) -> LoadedNode:
        if self._compile is not None:
            return self._compile(given, self._changing)
        listed = ", ".join(f"{name} along {sorted(axes)}" for name, axes in self._changing.items())
        raise InvalidInputError(
            f"the file has no program for iterations of '{self._loop.row.node}' that change"
            f" {listed}; export the model after a run in which they do"
        )
