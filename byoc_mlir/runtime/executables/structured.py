"""Executables of models that take or give lists of arrays, `None`, or maps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.errors import ExportError, InvalidInputError
from byoc_mlir.runtime.arguments import Inputs, Shape
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.executables.recent import Recent
from byoc_mlir.runtime.map_rows import row_of
from byoc_mlir.runtime.profiled import TimedRun
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report
from byoc_mlir.tensors import (
    Kind,
    MapRow,
    Structure,
    StructureInfo,
    TensorInfo,
    item_name,
    item_names,
)

Structures: TypeAlias = Mapping[str, Structure]

_TAKES_MORE = "a model that takes or gives sequences or optionals"


class StructuredExecutable(Executable):
    """An executable of tensors for each structure of the inputs, compiled when it first comes.

    Args:
        inputs: what the model takes, in order.
        outputs: what each output is, by name and in order.
        compile: the executable for sequences and optionals that are like this.
        maps: for each input that is a map, the tensors that are made of it.
        keys: for each output of maps, the key of each column of the tensor that it is made of.
        only: that of a model whose inputs are all tensors or maps: there is one structure.
    """

    def __init__(
        self,
        inputs: Sequence[TensorInfo],
        outputs: Mapping[str, Kind],
        compile: Callable[[Structures], Executable],
        maps: Mapping[str, Sequence[MapRow]],
        keys: Mapping[str, Sequence[int] | Sequence[str]],
        only: Executable | None = None,
    ):
        super().__init__(inputs, tuple(outputs))
        self._kinds = dict(outputs)
        self._structured = [
            info
            for info in self.inputs
            if isinstance(info, StructureInfo) and info.name not in maps
        ]
        self._compile = compile
        self._map_rows = maps
        self._keys = keys
        compiled = {} if only is None else {(): only}
        self._executables = Recent[tuple[Structure, ...], Executable](values=compiled)

    def report(self) -> Report:
        return self._executables.latest.report()

    @property
    def program(self) -> Program:
        return self._executables.latest.program

    def close(self) -> None:
        self._executables.close()

    def _run(self, inputs: Inputs) -> dict[str, Any]:
        executable, tensors = self._in_tensors(inputs)
        return self._of_tensors(executable.run(tensors))

    def timed(self, inputs: Inputs) -> TimedRun:
        start = time.perf_counter()
        executable, tensors = self._in_tensors(inputs)
        run = executable.timed(tensors)
        outputs = self._of_tensors(run.outputs)
        return TimedRun(outputs, time.perf_counter() - start, run.parts)

    def _in_tensors(self, inputs: Inputs) -> tuple[Executable, dict[str, Any]]:
        """The executable for inputs of this structure, and the tensors that they are made of."""
        named = self._arguments.by_name(inputs)
        structures = {info.name: _structure(info, named[info.name]) for info in self._structured}
        tensors = {
            piece: value
            for name, whole in named.items()
            for piece, value in self._pieces(name, whole, structures)
        }
        return self._executable(structures), tensors

    def _of_tensors(self, results: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs that tensors make up."""
        return {
            name: self._maps(name, results) if kind == "maps" else _assembled(name, kind, results)
            for name, kind in self._kinds.items()
        }

    def _pieces(self, name: str, value: Any, structures: Structures) -> Iterator[tuple[str, Any]]:
        if name in self._map_rows:
            return ((row.name, row_of(row, name, value)) for row in self._map_rows[name])
        return _pieces(name, value, structures.get(name, 0))

    def _maps(self, name: str, results: Mapping[str, Array]) -> list[dict[int | str, float]]:
        """One map for each row of a tensor."""
        return [dict(zip(self._keys[name], row, strict=True)) for row in results[name].tolist()]

    def _warmup(self, shapes: Mapping[str, Shape]) -> None:
        if self._structured:
            listed = ", ".join(map(str, self._structured))
            raise InvalidInputError(
                f"the shapes of {listed} are known by an example only: call run"
            )
        if self._map_rows:
            raise InvalidInputError(f"a map has no shape: leave {', '.join(self._map_rows)} out")
        self._executable({}).warmup(shapes)

    def _exported(self, shapes: Mapping[str, Shape] | None) -> Program:
        raise ExportError(f"{_TAKES_MORE} cannot be exported")

    def __reduce__(self) -> tuple[Any, ...]:
        raise ExportError(f"{_TAKES_MORE} cannot be pickled: compile it in each process")

    def _executable(self, structures: Structures) -> Executable:
        key = tuple(structures.values())
        return self._executables.get(lambda: key, lambda: (key, self._compile(structures)))


def _structure(info: StructureInfo, value: Any) -> Structure:
    if value is None and info.kind in ("optional", "optional sequence"):
        return None
    wants_sequence = info.kind in ("sequence", "optional sequence")
    if value is None or isinstance(value, list | tuple) != wants_sequence:
        wanted = "a list of arrays" if wants_sequence else "an array"
        raise InvalidInputError(
            f"input '{info.name}' must be {wanted}, found {type(value).__name__}"
        )
    return tuple(np.ndim(item) for item in value) if wants_sequence else np.ndim(value)


def _pieces(name: str, value: Any, structure: Structure) -> Iterator[tuple[str, Any]]:
    """The tensors of a value by name."""
    if isinstance(structure, tuple):
        for number, item in enumerate(value):
            yield item_name(name, number), item
    elif structure is not None:
        yield name, value


def _assembled(name: str, kind: Kind, tensors: Mapping[str, Array]) -> Any:
    """An output made of the tensors that belong to it; an optional without any is not there."""
    if kind == "tensor":
        return tensors[name]
    if kind == "optional":
        return tensors.get(name)
    items = [tensors[item] for item in item_names(name, tensors)]
    return items if items or kind == "sequence" else None
