"""Execution of the segments of a model that is split at data-dependent shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np

from byoc_mlir.dims import GREATEST_SIZE
from byoc_mlir.errors import ExportError, InputValuesNeededError, InvalidInputError, NodeProblem
from byoc_mlir.runtime import plan
from byoc_mlir.runtime.arguments import Arguments, Inputs, Shape
from byoc_mlir.runtime.execution.node import LoadedNode, Named, Parts, Step, exported_part
from byoc_mlir.runtime.execution.recent import Recent
from byoc_mlir.runtime.program import Array
from byoc_mlir.tensors import MOST_SIZES, Trim, item_name, item_names, size_input

StageCompiler: TypeAlias = Callable[[int, Named], LoadedNode]
"""Function that compiles a segment, by its number from 0, for given inputs; some inputs only pass
sizes."""

_SIZE_TYPES = (np.dtype(np.int64), np.dtype(np.int32))
_Key: TypeAlias = tuple[str, ...]
"""Inputs of a segment that only pass sizes."""


class LoadedStaged(LoadedNode):
    """Model that is split into segments, with the segments that are compiled so far.

    A segment is compiled when the shapes of its inputs are known.

    Args:
        model: the model of the plan, whose segments have no nodes.
        compile: function that compiles a segment; None if nothing can be compiled, as for a plan
            from a file.
        stages: segments that are compiled already, by number.
    """

    def __init__(
        self,
        model: plan.Staged,
        compile: StageCompiler | None,
        stages: Mapping[int, LoadedNode],
    ):
        self.inputs, self.outputs = model.inputs, model.outputs
        self._model = model
        self._arguments = Arguments(model.inputs)
        self._names = dict.fromkeys(info.name for info in model.inputs)
        self._compile = compile
        self._segments = [
            Recent[_Key, LoadedNode](self._known_segment(number, stages.get(number)))
            for number in range(len(model.stages))
        ]
        self._parts = list(zip(model.stages, self._segments, strict=True))

    def run(self, inputs: Inputs, parts: Parts = None) -> dict[str, Any]:
        arrays = self._arguments.checked(inputs)
        values = dict(zip(self._names, arrays))  # noqa: B905, it takes longer
        self._compute(values, parts)
        results: dict[str, Any] = {}
        for name in self.outputs:  # a function for each output takes longer
            whole = values.get(name)
            if whole is None or isinstance(whole, list):
                results.update(_parts_of(name, values))
            else:
                results[name] = whole.copy() if name in self._names else whole
        return results

    def steps(self, inputs: Named, changing: Sequence[str]) -> Step:
        given = dict(inputs)

        def step(arrays: Sequence[Array]) -> Sequence[Array]:
            given.update(zip(changing, arrays, strict=True))
            values = dict(given)
            self._compute(values, None)
            return [values[name] for name in self.outputs]

        return step

    def _compute(self, values: dict[str, Array], parts: Parts) -> None:
        """Runs all segments on the model's inputs; adds the segments' results to `values`."""
        for number, (stage, segment) in enumerate(self._parts):
            read = arrays = {name: values[name] for name in stage.inputs}
            key: _Key = ()
            if stage.sizes:
                arrays = _with_sizes(stage, arrays)
                read, key = taken(arrays), self._saying(number, arrays)
            latest = segment.latest
            if latest is None or latest[0] != key:
                latest = key, self._found(number, key, arrays)
            results = latest[1].run(read, parts)
            values.update(_trimmed(results, stage.trims) if stage.trims else results)

    def warmup(self, shapes: Mapping[str, Shape]) -> None:
        sizes = self._model.stages[0].sizes
        if sizes:
            reason = "its values are sizes in the model, which a run tells"
            problems = [NodeProblem(name, "input", "", reason) for name in sizes]
            raise InputValuesNeededError(problems, sizes)
        first = self._segments[0].known().get(())
        if first is not None:
            first.warmup(shapes)

    def known(self) -> plan.Staged:
        stages = (
            replace(stage, nodes=tuple(node.known() for node in segment.known().values()))
            for stage, segment in self._parts
        )
        return replace(self._model, stages=tuple(stages))

    def exported(self, shapes: Mapping[str, Shape] | None) -> plan.Staged:
        if shapes is not None:
            raise ExportError(
                f"{self._because()}: sizes are arguments of what is exported; omit shapes"
            )
        stages = self._model.stages
        exported: list[plan.PlanStage] = []
        for number, stage in enumerate(stages):
            what = f"segment {number + 1} of {len(stages)}"
            found = list(self._segments[number].known().items())
            if not found:
                raise ExportError(
                    f"{self._because()}; {what} is compiled when the model runs: run it once on"
                    " inputs of the usual kind, then export it; on the command line, give such"
                    " inputs as --inputs FILE.npz"
                )
            saying, node = found[-1]
            nodes = (exported_part(node, what),)
            exported.append(replace(stage, nodes=nodes, sizes=stage.sizes if saying else ()))
        return replace(self._model, stages=tuple(exported))

    def close(self) -> None:
        for segment in self._segments:
            segment.close()

    def _because(self) -> str:
        sizes = self._model.stages[0].sizes
        if sizes:
            return f"shapes in the model depend on the values of the inputs {', '.join(sizes)}"
        return "the model is split into segments, since shapes in it depend on computed values"

    def _found(self, number: int, key: _Key, arrays: Named) -> LoadedNode:
        return self._segments[number].get(lambda: key, lambda: (key, self._made(number, arrays)))

    def _made(self, number: int, arrays: Named) -> LoadedNode:
        if self._compile is not None:
            return self._compile(number, arrays)
        values = taken(arrays).keys() & set(self._model.stages[number].sizes)
        found = f"below 0, found in {', '.join(values)}" if values else "of so many elements"
        raise InvalidInputError(f"the file has no program for sizes {found}")

    def _known_segment(self, number: int, node: LoadedNode | None) -> dict[_Key, LoadedNode]:
        """Returns a segment that is compiled already, by its inputs that only pass a size."""
        if node is None:
            return {}
        return {self._saying(number, {info.name for info in node.inputs}): node}

    def _saying(self, number: int, names: Iterable[str]) -> _Key:
        """Returns those names of a segment's inputs that only pass a size."""
        stage = self._model.stages[number]
        return tuple(sorted(set(names) - set(stage.inputs))) if stage.sizes else ()


def _with_sizes(stage: plan.PlanStage, named: dict[str, Array]) -> dict[str, Array]:
    """Returns the values that a segment reads, and for each size an array whose shape passes it."""
    sizes = {name: named[name] for name in stage.sizes}
    return {**named, **_saying(sizes)} if all(map(_are_sizes, sizes.values())) else named


def taken(arrays: Named) -> Named:
    """Returns a segment's inputs without the values that other inputs already determine."""
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


def _parts_of(name: str, values: Mapping[str, Any]) -> dict[str, Array]:
    """Returns the tensors of an output by name, one for each item of a sequence."""
    whole = values.get(name)
    if isinstance(whole, list):
        return {item_name(name, at): item for at, item in enumerate(cast("list[Array]", whole))}
    return {item: values[item] for item in item_names(name, values)}


def _trimmed(results: Named, trims: Mapping[str, Trim]) -> dict[str, Array]:
    """Returns a segment's results, trimmed to their valid elements."""
    kept = dict(results)
    for name, trim in trims.items():
        count = int(np.asarray(results[trim.count]).reshape(()))
        axis = trim.axis % results[name].ndim
        places = (slice(None),) * axis + (slice(count),)
        kept[name] = np.ascontiguousarray(results[name][places])
    return kept
