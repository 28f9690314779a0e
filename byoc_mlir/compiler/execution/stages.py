"""Segments of a split model: from the cache, or else compiled and added to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from byoc_mlir.compiler.cache.cached_model import CachedModel, ModelEntry
from byoc_mlir.compiler.cache.stored_programs import StoredPrograms
from byoc_mlir.compiler.execution.programs import ModelPrograms, leaf_of_source, loaded_leaf
from byoc_mlir.runtime.arguments import fits
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.execution.staged import LoadedStaged, taken
from byoc_mlir.runtime.plan import Staged
from byoc_mlir.runtime.program import Array
from byoc_mlir.tensors import TensorInfo

if TYPE_CHECKING:
    from byoc_mlir.compiler.execution.split import SplitModel
    from byoc_mlir.compiler.options import CompileOptions
    from byoc_mlir.compiler.source import Source

_Reader: TypeAlias = "Callable[[], tuple[SplitModel, CompileOptions]]"
_Arrays: TypeAlias = Mapping[str, Array] | None
"""Inputs of a segment; `None` for the first one, which takes the model's inputs."""


class ModelStages:
    """Compiler of a model's segments.

    Args:
        read: function that reads and splits the model, when the cache lacks a segment.
        cached: the model in the cache; `None` if nothing is kept.
        entry: cache entry with the keys of the segments; `None` if the split itself is not cached.
    """

    def __init__(self, read: _Reader, cached: CachedModel | None, entry: ModelEntry | None):
        self._read = read
        self._split: tuple[SplitModel, CompileOptions] | None = None
        self._cached = cached
        self._entry = entry

    def __call__(self, number: int, arrays: _Arrays) -> LoadedNode:
        """Returns the compiled segment `number`, from 0, for inputs of the shapes and types of
        `arrays`.
        """
        return self._known(number, arrays) or self._compiled(number, arrays)

    def _known(self, number: int, arrays: _Arrays) -> LoadedNode | None:
        """Returns the segment from the cache, if the cached one accepts such inputs."""
        cached, entry = self._cached, self._entry
        if cached is None or entry is None or not entry.keys[number]:
            return None
        part = replace(cached, key=entry.keys[number])
        known = part.read_entry()
        if known is None or not _takes(known.inputs, arrays):
            return None
        programs = ModelPrograms(lambda: self._source(number, arrays), StoredPrograms(part, known))
        return loaded_leaf(known.inputs, known.outputs, programs, cached.request)

    def _compiled(self, number: int, arrays: _Arrays) -> LoadedNode:
        source, options = self._source(number, arrays)
        part = None if self._cached is None else self._cached.part(source.model)
        if part is not None:
            self._note(number, part.key)
        return leaf_of_source(source, options, part)

    def _source(self, number: int, arrays: _Arrays) -> tuple[Source, CompileOptions]:
        if self._split is None:
            self._split = self._read()
        split, options = self._split
        return split.stage(number, arrays), options

    def _note(self, number: int, key: str) -> None:
        """Writes the key of a segment to the cache."""
        if self._cached is None or self._entry is None:
            return
        keys = self._entry.keys
        self._entry = replace(self._entry, keys=(*keys[:number], key, *keys[number + 1 :]))
        self._cached.write_entry(self._entry)


def loaded_stages(plan: Staged, stages: ModelStages) -> LoadedStaged:
    """Returns the node for a split model; the first segment is compiled now if its sizes are
    known.
    """
    first = {} if plan.stages[0].sizes else {0: stages(0, None)}
    return LoadedStaged(plan, stages, first)


def _takes(inputs: tuple[TensorInfo, ...], arrays: _Arrays) -> bool:
    """True if a segment accepts these arrays; without arrays, the first segment takes the model's
    inputs.
    """
    if arrays is None:
        return True
    given = taken(arrays)
    return set(given) == {info.name for info in inputs} and all(
        info.dtype == given[info.name].dtype and fits(info.shape, given[info.name].shape)
        for info in inputs
    )
