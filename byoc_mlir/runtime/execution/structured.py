"""Models whose inputs or outputs are lists of arrays, `None`, or maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np

from byoc_mlir.errors import ExportError, InvalidInputError
from byoc_mlir.runtime.arguments import Arguments, Inputs, Shape
from byoc_mlir.runtime.execution.node import LoadedNode, Parts
from byoc_mlir.runtime.execution.recent import Recent
from byoc_mlir.runtime.plan import Structured
from byoc_mlir.runtime.program import Array
from byoc_mlir.tensors import Kind, MapRow, Structure, StructureInfo, item_name, item_names

Structures: TypeAlias = Mapping[str, Structure]
StructureCompiler: TypeAlias = Callable[[Structures], LoadedNode]
"""Function that compiles a model of tensors, for sequences and optionals of these structures."""


class LoadedStructured(LoadedNode):
    """Model with one node for each structure of its inputs, compiled when the structure is first
    used.

    Args:
        model: the inputs and outputs of the model.
        compile: function that compiles the model for a structure.
        only: the only node, if all inputs are tensors or maps, so that there is one structure.
    """

    def __init__(
        self, model: Structured, compile: StructureCompiler, only: LoadedNode | None = None
    ):
        self.inputs, self.outputs = model.inputs, tuple(model.kinds)
        self._model = model
        self._arguments = Arguments(model.inputs)
        self._structured = [
            info
            for info in model.inputs
            if isinstance(info, StructureInfo) and info.name not in model.maps
        ]
        self._makers = {name: _maker(keys) for name, keys in model.keys.items()}
        self._compile = compile
        compiled = {} if only is None else {(): only}
        self._nodes = Recent[tuple[Structure, ...], LoadedNode](values=compiled)

    def run(self, inputs: Inputs, parts: Parts = None) -> dict[str, Any]:
        structures: Structures = {}
        if self._structured or self._model.maps:  # else all are tensors, which the node checks
            named = self._arguments.by_name(inputs)
            structures = {one.name: _structure(one, named[one.name]) for one in self._structured}
            inputs = {
                piece: value
                for name, whole in named.items()
                for piece, value in self._pieces(name, whole, structures)
            }
        results = self._node(structures).run(inputs, parts)
        return {
            name: self._maps(name, results) if kind == "maps" else _assembled(name, kind, results)
            for name, kind in self._model.kinds.items()
        }

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        if self._structured:
            listed = ", ".join(map(str, self._structured))
            raise InvalidInputError(
                f"the shapes of {listed} are known only from an example: call run"
            )
        if self._model.maps:
            raise InvalidInputError(f"a map has no shape: omit {', '.join(self._model.maps)}")
        self._node({}).warmup(shapes)

    def known(self) -> Structured:
        nodes = tuple(node.known() for node in self._nodes.known().values())
        return replace(self._model, nodes=nodes)

    def exported(self, shapes: Mapping[str, Shape] | None) -> Structured:
        raise ExportError("a model that takes or gives sequences or optionals cannot be exported")

    def close(self) -> None:
        self._nodes.close()

    def _pieces(self, name: str, value: Any, structures: Structures) -> Iterator[tuple[str, Any]]:
        rows = self._model.maps.get(name)
        if rows is not None:
            return ((row.name, row_of(row, name, value)) for row in rows)
        return _pieces(name, value, structures.get(name, 0))

    def _maps(self, name: str, results: Mapping[str, Array]) -> list[dict[int | str, float]]:
        """Returns a list of maps, one for each row of a tensor."""
        return self._makers[name](results[name].tolist())

    def _node(self, structures: Structures) -> LoadedNode:
        key, latest = tuple(structures.values()), self._nodes.latest
        if latest is not None and latest[0] == key:
            return latest[1]
        return self._nodes.get(lambda: key, lambda: (key, self._compile(structures)))


def _maker(
    keys: Sequence[int | str],
) -> Callable[[list[list[float]]], list[dict[int | str, float]]]:
    """Returns a function that makes a map of each row of as many values as keys.

    Its code is generated, with the keys as variables: a display of a dictionary takes a third of
    the time of `dict(zip(keys, row))`.
    """
    values = "".join(f"v{number}, " for number in range(len(keys)))
    pairs = ", ".join(f"k{number}: v{number}" for number in range(len(keys)))
    names = {f"k{number}": key for number, key in enumerate(keys)}
    return eval(f"lambda rows: [{{{pairs}}} for ({values}) in rows]", names)


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
    """Yields the tensors that make up a value, with their names."""
    if isinstance(structure, tuple):
        for number, item in enumerate(value):
            yield item_name(name, number), item
    elif structure is not None:
        yield name, value


def _assembled(name: str, kind: Kind, tensors: Mapping[str, Array]) -> Any:
    """Returns an output, assembled from its tensors; an optional without tensors is None."""
    if kind == "tensor":
        return tensors[name]
    if kind == "optional":
        return tensors.get(name)
    items = [tensors[item] for item in item_names(name, tensors)]
    return items if items or kind == "sequence" else None


def row_of(row: MapRow, name: str, value: Any) -> Array:
    """Returns the tensor for a map; missing keys are 0, or an empty string.

    Args:
        name: name of the map in errors.

    Raises:
        InvalidInputError: the value is no map, or has keys or values of other types.
    """
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            f"input '{name}' must be a map, as a dict, found {type(value).__name__}"
        )
    try:
        return _row(row, cast(Mapping[Any, Any], value))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"input '{name}' must be a map whose values make {row.dtype}: {error}"
        ) from error


def _row(row: MapRow, value: Mapping[Any, Any]) -> Array:
    if row.keys is None:
        return np.array([[value[key] for key in sorted(value)]]).astype(row.dtype)
    array = np.full((1, len(row.keys)), "" if row.dtype == object else 0, row.dtype)
    for key, number in value.items():
        if key in row.places:
            array[0, row.places[key]] = number
    return array
