"""Executables of models that take or give sequences and optionals: lists of arrays, `None`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, takewhile
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.boundary import boundary
from byoc_mlir.errors import ExecutionError, ExportError, InvalidInputError
from byoc_mlir.runtime import executable as plain
from byoc_mlir.runtime.executable import Executable, Inputs, Shape
from byoc_mlir.runtime.forks import ForkSafeLock
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report
from byoc_mlir.tensors import Kind, Structure, StructureInfo, TensorInfo, item_name

Structures: TypeAlias = Mapping[str, Structure]


class FlatExecutable(Executable):
    """Gives what the program for the inputs' shapes gives: the length of a sequence depends on
    them."""

    @boundary("run")
    def run(self, inputs: Inputs) -> dict[str, Array]:
        arrays = self._checked(inputs)
        instance = self._static or self._instance_for(arrays)
        names = [spec.name for spec in instance.program.outputs]
        return dict(zip(names, instance.run(arrays), strict=True))


class StructuredExecutable(Executable):
    """An executable of tensors for each structure of the inputs, compiled when it first comes.

    Args:
        inputs: what the model takes, in order.
        outputs: what each output is, by name and in order.
        compile: the executable for sequences and optionals that are like this.
    """

    def __init__(
        self,
        inputs: Sequence[TensorInfo],
        outputs: Mapping[str, Kind],
        compile: Callable[[Structures], Executable],
    ):
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self._kinds = dict(outputs)
        self._names = {info.name: index for index, info in enumerate(self.inputs)}
        self._structured = [info for info in self.inputs if isinstance(info, StructureInfo)]
        self._compile = compile
        self._executables: OrderedDict[tuple[Structure, ...], Executable] = OrderedDict()
        self._lock = ForkSafeLock()
        self._closed = False
        if not self._structured:
            self._executable({})

    @boundary("run")
    def run(self, inputs: Inputs) -> dict[str, Any]:
        """As `Executable.run`; a sequence is a list of arrays, an optional may be `None`."""
        given = inputs if isinstance(inputs, Mapping) else plain.as_list(inputs)
        named = given if isinstance(given, Mapping) else dict(zip(self._names, given))  # noqa: B905
        if named.keys() != self._names.keys():
            raise InvalidInputError(self._name_mismatch(named))
        structures = {info.name: _structure(info, named[info.name]) for info in self._structured}
        tensors = {
            piece: value
            for info in self.inputs
            for piece, value in _pieces(info.name, named[info.name], structures.get(info.name, 0))
        }
        results = self._executable(structures).run(tensors)
        return {name: _assembled(name, kind, results) for name, kind in self._kinds.items()}

    @boundary("warmup")
    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        """Compiles a model whose inputs are all tensors, for shapes that are expected."""
        if self._structured:
            listed = ", ".join(map(str, self._structured))
            raise InvalidInputError(
                f"the shapes of {listed} are known by an example only: call run"
            )
        self._executable({}).warmup(shapes)

    def report(self) -> Report:
        return self._latest().report()

    @property
    def program(self) -> Program:
        return self._latest().program

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for executable in self._executables.values():
                executable.close()

    def _fixed(self, shapes: Mapping[str, Shape] | None) -> Program:
        raise ExportError("a model that takes or gives sequences or optionals cannot be exported")

    def __reduce__(self) -> tuple[Any, ...]:
        raise ExportError(
            "a model that takes or gives sequences or optionals cannot be pickled: compile it in"
            " each process"
        )

    def _latest(self) -> Executable:
        if not self._executables:
            raise ExecutionError("nothing is compiled yet: the model takes sequences; call run")
        return next(reversed(self._executables.values()))

    def _executable(self, structures: Structures) -> Executable:
        key = tuple(structures.values())
        with self._lock:
            if self._closed:
                raise ExecutionError("the executable is closed; compile the model again")
            if key not in self._executables:
                self._executables[key] = self._compile(structures)
            self._executables.move_to_end(key)
            if len(self._executables) > plain.CACHED_SHAPES:
                # A call may still be using it: it is freed when the last reference goes.
                self._executables.popitem(last=False)
            return self._executables[key]


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
    names = takewhile(tensors.__contains__, (item_name(name, number) for number in count()))
    items = [tensors[item] for item in names]
    return items if items or kind == "sequence" else None
