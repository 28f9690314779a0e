"""One model in the cache: its inputs and outputs, its dependencies, and its segments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.compiler.cache.fingerprint import digest, environment_values
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.compiler.calibration import model_key
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.errors import ArtifactError, InvalidModelError
from byoc_mlir.frontend.files.external_data import ExternalFiles
from byoc_mlir.runtime.files.serialise import decode, encode_fields
from byoc_mlir.runtime.plan import PlanStage
from byoc_mlir.tensors import TensorInfo

if TYPE_CHECKING:
    from byoc_mlir.compiler.options import CompileOptions
    from byoc_mlir.compiler.source import Source


@dataclass(frozen=True)
class ModelEntry:
    """Plan of a model without its programs, and the dependencies of its compilation."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    files: Mapping[str, str]
    """Hash of each file of external data, by its path below the model's folder."""
    variables: tuple[str, ...]
    """Environment variables that the backends read."""
    environment: Mapping[str, str]
    """Values of those environment variables that were set."""
    devices: Mapping[str, str]
    """Identity of each device that a backend's regions may run on."""
    stages: tuple[PlanStage, ...] = ()
    """Segments of a model that is split, without their nodes; empty for a leaf."""
    keys: tuple[str, ...] = ()
    """Keys of the segments' own entries; "" for a segment that was not compiled yet."""
    value_inputs: tuple[str, ...] = ()
    """Inputs whose values are compiled in."""
    needs_numbers: bool = False
    """True if the model has no shape-polymorphic program."""

    def is_current(self) -> bool:
        """True if environment variables and devices are those of the compilation."""
        if environment_values(self.variables) != self.environment:
            return False
        return _identities(self.devices) == self.devices


@dataclass(frozen=True)
class CachedModel:
    """Model in a cache, with the options of its compilation."""

    cache: Cache
    request: Request
    key: str

    @staticmethod
    def of(cache: Cache, request: Request) -> CachedModel | None:
        """Returns the model of a request; `None` if its programs have no unique key.

        Raises:
            InvalidModelError: the model's file cannot be read.
        """
        key = model_key(request)
        return None if key is None else CachedModel(cache, request, key)

    def read_entry(self) -> ModelEntry | None:
        """Returns the cache's entry of the model if its dependencies are unchanged, else `None`."""
        container = self.cache.read(self.key)
        if container is None:
            return None
        try:
            entry = decode(ModelEntry, container.document, container.blobs)
        except ArtifactError:
            self.cache.delete(self.key)
            return None
        if not entry.is_current() or self._files(list(entry.files)) != entry.files:
            return None
        if self.external is not None:
            self.external.close()
        return entry

    def new_entry(
        self, source: Source, options: CompileOptions, stages: tuple[PlanStage, ...] = ()
    ) -> ModelEntry | None:
        """Adds the model to the cache, without programs; returns `None` if it cannot be cached."""
        from onnx import ModelProto

        from byoc_mlir.backends import get_backend

        backends = [get_backend(target) for target in options.targets]
        if not all(backend.is_cacheable for backend in backends):
            return None
        if not isinstance(source.model, ModelProto):
            return None
        files = self._files(sorted(source.external_files))
        if files is None:
            return None
        variables = tuple(name for backend in backends for name in backend.environment)
        environment = environment_values(variables)
        entry = ModelEntry(
            *(source.inputs, source.outputs, files, variables, environment),
            _identities(backend.memory_space for backend in backends),
            *(stages, ("",) * len(stages)),
        )
        self.write_entry(entry)
        return entry

    def part(self, model: object) -> CachedModel | None:
        """Returns the cache's handle for a part of this model that is compiled as a separate model.

        Returns `None` if the part has no unique key. The key of a part differs from the key of a
        whole model with the same bytes, since their programs differ: all outputs of a part are
        tensors.
        """
        found = CachedModel.of(self.cache, replace(self.request, model=model))
        return None if found is None else replace(found, key=digest(found.key, "part"))

    def write_entry(self, entry: ModelEntry) -> None:
        """Writes the model's entry to the cache."""
        self.cache.write(self.key, encode_fields(entry, [], without=""))

    @property
    def external(self) -> ExternalFiles | None:
        """Returns the model's files of external data, if it may have some."""
        model = self.request.model
        return model.files if isinstance(model, Snapshot) else None

    def _files(self, names: list[str]) -> dict[str, str] | None:
        """Returns the hash of each named file of external data; `None` if a file cannot be read."""
        if not names:
            return {}
        if self.external is None:
            return None
        try:
            return {name: self.external.digest(name, self.cache.digests) for name in names}
        except InvalidModelError:
            return None  # the compiler says what is wrong with it


def _identities(spaces: Iterable[str]) -> dict[str, str]:
    """Returns the identities of the devices among memory spaces, whose packages are imported."""
    names = set(spaces) - {HOST_SPACE}
    if not names:
        return {}
    from byoc_mlir.devices import identities

    return identities(names)
