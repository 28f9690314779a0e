"""A model that runs in stages, in the cache: each stage is a model of its own there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from byoc_mlir.artifact import write
from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.cache.cached_specialiser import CachedSpecialiser
from byoc_mlir.compiler.cache.fingerprint import digest
from byoc_mlir.compiler.execution.ahead import compile_ahead
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import ArtifactError
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.executables.specialising import Specialiser
from byoc_mlir.runtime.executables.staged import ExecutableStage, StagedExecutable, taken
from byoc_mlir.runtime.files.serialise import decode, encode_fields
from byoc_mlir.runtime.program import Array
from byoc_mlir.tensors import TensorInfo, Trim


@dataclass(frozen=True)
class _StageEntry:
    inputs: tuple[str, ...]
    trims: Mapping[str, Trim]
    key: str
    """Of the stage's own entry; empty for a stage that was not compiled yet."""
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class _Entry:
    """What is known of a model that runs in stages, before any of its nodes is read."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    stages: tuple[_StageEntry, ...]


class CachedStages:
    """The stages of a model in a cache."""

    def __init__(self, model: CachedModel):
        self._model = model
        self._key = digest(model.key, "stages")
        self._keys: dict[int, str] = {}
        """Of the entries of stages, by the stage's number from 0."""
        self._executable: StagedExecutable | None = None

    def place(self, number: int, source: object) -> CachedModel | None:
        """Where the cache has a stage that is about to be compiled; `None` where it cannot."""
        part = self._model.part(source)
        if part is not None:
            self._keys[number] = part.key
            self._write()
        return part

    def keep(self, executable: StagedExecutable) -> None:
        """Keeps how a model runs; the keys of its stages follow when they are compiled."""
        self._executable = executable
        self._write()

    def executable(self) -> StagedExecutable | None:
        """The model as the cache has it; what is not there is compiled."""
        entry = self._read()
        if entry is None:
            return None
        self._keys = {number: stage.key for number, stage in enumerate(entry.stages)}
        stages = [
            ExecutableStage(stage.inputs, partial(self._compiled, number), stage.trims, stage.sizes)
            for number, stage in enumerate(entry.stages)
        ]
        first = None if entry.stages[0].sizes else self._compiled(0, None)
        remake = partial(_recompiled, self._model.request)
        self._executable = StagedExecutable(
            entry.inputs, entry.outputs, stages, first, remake, write
        )
        return self._executable

    def _compiled(self, number: int, arrays: Mapping[str, Array] | None) -> Executable:
        """A stage for inputs like these, from the cache if it was compiled for such."""
        request = self._model.request
        part = CachedModel(self._model.cache, request, self._keys[number])
        entry = part.read_entry()
        if entry is None or not _takes(entry.inputs, arrays):
            from byoc_mlir.compiler.execution.model import compile_stage

            return compile_stage(request, number, arrays, self)
        make = partial(self._specialiser, number, arrays)
        specialiser = CachedSpecialiser(part, entry, make)
        return compile_ahead(entry.inputs, entry.outputs, specialiser, request.limits)

    def _specialiser(self, number: int, arrays: Mapping[str, Array] | None) -> Specialiser:
        from byoc_mlir.compiler.execution.model import stage_specialiser

        return stage_specialiser(self._model.request, number, arrays)

    def _read(self) -> _Entry | None:
        container = self._model.cache.read(self._key)
        if container is None:
            return None
        try:
            return decode(_Entry, container.document, container.blobs)
        except ArtifactError:
            self._model.cache.delete(self._key)
            return None

    def _write(self) -> None:
        executable = self._executable
        if executable is None:
            return
        stages = tuple(
            _StageEntry(stage.inputs, stage.trims, self._keys.get(number, ""), stage.sizes)
            for number, stage in enumerate(executable.stages)
        )
        entry = _Entry(executable.inputs, executable.outputs, stages)
        self._model.cache.write(self._key, encode_fields(entry, [], without=""))


def _recompiled(request: Request) -> Executable:
    from byoc_mlir.compiler.execution.model import compile_model

    return compile_model(request)


def _takes(inputs: tuple[TensorInfo, ...], arrays: Mapping[str, Array] | None) -> bool:
    """Whether a stage takes such inputs; the first one takes those of the model."""
    if arrays is None:
        return True
    given = taken(arrays)
    return set(given) == {info.name for info in inputs} and all(
        info.dtype == given[info.name].dtype
        and len(info.shape) == given[info.name].ndim
        and all(
            isinstance(size, str) or size == found
            for size, found in zip(info.shape, given[info.name].shape, strict=True)
        )
        for info in inputs
    )
