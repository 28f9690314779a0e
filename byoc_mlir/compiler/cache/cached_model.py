"""One model in the cache: what it takes and gives, and its program for each set of shapes."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from byoc_mlir.compiler.cache.fingerprint import (
    array_digest,
    digest,
    environment_values,
    stamp,
)
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.compiler.cache.stored_weights import StoredWeight, StoredWeights
from byoc_mlir.compiler.rates import model_key
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.errors import ArtifactError, InvalidModelError
from byoc_mlir.frontend.files.external_data import ExternalFiles
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.executables.sized import SizedProgram
from byoc_mlir.runtime.files.serialise import Blob, Json, decode, encode, encode_fields
from byoc_mlir.runtime.files.stored import decode_program, encode_program
from byoc_mlir.runtime.files.stored_sizes import StoredSizes
from byoc_mlir.runtime.program import Array, ObjectCode, Program
from byoc_mlir.tensors import TensorInfo

if TYPE_CHECKING:
    from byoc_mlir.compiler.options import CompileOptions
    from byoc_mlir.compiler.source import Source

_T = TypeVar("_T")


@dataclass(frozen=True)
class ModelEntry:
    """What is known of a model without its programs, and what else it depends on."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    value_inputs: tuple[str, ...]
    """Inputs whose values are compiled in."""
    files: Mapping[str, str]
    """External data: path below the model's folder, to the content's hash."""
    variables: tuple[str, ...]
    """Environment variables that the backends look at."""
    environment: Mapping[str, str]
    """Those of them that were set."""
    needs_numbers: bool = False
    """Whether no program can serve all sizes."""

    def is_current(self) -> bool:
        """True if the environment variables are as they were."""
        return environment_values(self.variables) == self.environment


@dataclass(frozen=True)
class _Circumstances:
    """What was said and used while a program was compiled."""

    warnings: tuple[str, ...]
    libraries: Mapping[str, str]
    """Size and date of each shared library by path."""


@dataclass(frozen=True)
class CachedModel:
    """A model with the options it is compiled with, in a cache."""

    cache: Cache
    request: Request
    key: str

    @staticmethod
    def of(cache: Cache, request: Request) -> CachedModel | None:
        """The model of a request; `None` when its programs cannot be told from others.

        Raises:
            InvalidModelError: the model's file cannot be read.
        """
        key = model_key(request)
        return None if key is None else CachedModel(cache, request, key)

    def read_entry(self) -> ModelEntry | None:
        """What the cache knows of the model, if all that it depended on is as it was."""
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
        if self._external is not None:
            self._external.close()
        return entry

    def new_entry(self, source: Source, options: CompileOptions) -> ModelEntry | None:
        """Puts a model into the cache, whose programs follow when they are made; `None` where it
        cannot be there.
        """
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
        entry = ModelEntry(source.inputs, source.outputs, (), files, variables, environment)
        self.write_entry(entry)
        return entry

    def part(self, model: object) -> CachedModel | None:
        """A part of the model that is compiled as a model of its own; `None` when its programs
        cannot be told from others.

        Its key is not that of the same bytes as a whole model: a part has no outputs but tensors.
        """
        found = CachedModel.of(self.cache, replace(self.request, model=model))
        return None if found is None else replace(found, key=digest(found.key, "part"))

    def write_entry(self, entry: ModelEntry) -> None:
        """Keeps what is known of the model."""
        self.cache.write(self.key, encode_fields(entry, [], without=""))

    def program_key(
        self, entry: ModelEntry, shapes: Mapping[str, Shape], values: Mapping[str, Array]
    ) -> str:
        """The name of a program in the cache."""
        sizes = {name: list(shape) for name, shape in shapes.items()}
        contents = {name: array_digest(array) for name, array in values.items()}
        return digest(self.key, dict(entry.files), dict(entry.environment), sizes, contents)

    def sized_key(self, entry: ModelEntry, number: int) -> str:
        """The name of a program that serves many sizes, counted from 0."""
        return digest(self.key, dict(entry.files), dict(entry.environment), "sized", number)

    def read_program(self, key: str, shared: StoredWeights) -> Program | None:
        """A program of the cache; its warnings are given again.

        Args:
            shared: weights that the model's programs share.
        """
        found = self._read(key, shared)
        return None if found is None else found[0]

    def read_sized(self, key: str, shared: StoredWeights) -> SizedProgram | None:
        """As `read_program`, of a program that serves many sizes."""
        found = self._read(key, shared)
        if found is None:
            return None
        program, sizes = found
        try:
            return decode(StoredSizes, sizes, ()).program(program, self.request.limits)
        except ArtifactError:
            self.cache.delete(key)
            return None

    def _read(self, key: str, shared: StoredWeights) -> tuple[Program, Json] | None:
        """A program, and its sizes if they are its arguments."""
        start = time.perf_counter()
        container = self.cache.read(key)
        if container is None:
            return None
        document, blobs = container.document, container.blobs
        try:
            code = decode(ObjectCode, document.get("code"), blobs)
            said = decode(_Circumstances, document.get("circumstances"), blobs)
            places = decode(Mapping[str, StoredWeight], document.get("weights"), blobs)
            weights = shared.read(places)
            if weights is None:
                return None
            code = replace(code, weights={**code.weights, **weights})
            folder = Path(sys.prefix, "lib")
            program = decode_program(document.get("program"), blobs, code, "the cache", folder)
        except ArtifactError:
            self.cache.delete(key)
            return None
        if _libraries(program) != said.libraries:
            return None
        for text in said.warnings:
            warnings.warn(text, stacklevel=2)
        seconds = (("cache", time.perf_counter() - start),)
        report = replace(program.report, compile_seconds=seconds, pass_seconds=())
        return replace(program, report=report), document.get("sizes")

    def write_program(
        self,
        key: str,
        program: Program,
        said: tuple[str, ...],
        shared: StoredWeights,
        sizes: StoredSizes | None = None,
    ) -> None:
        """Keeps a program, what was said while it was compiled, and its sizes if they are its
        arguments.

        Raises:
            InvalidModelError: external data was changed in place since it was hashed.
        """
        code, blobs = program.code, list[Blob]()
        assert isinstance(code, ObjectCode)
        places = shared.write(code.weights, self._check_unchanged)
        own = {name: array for name, array in code.weights.items() if name not in places}
        document: dict[str, Json] = {
            "program": encode_program(program, blobs),
            "code": encode(replace(code, weights=own), blobs),
            "weights": encode(places, blobs),
            "circumstances": encode(_Circumstances(said, _libraries(program)), blobs),
            "sizes": encode(sizes, blobs),
        }
        self.cache.write(key, document, blobs, self._check_unchanged)

    def _check_unchanged(self) -> None:
        if self._external is not None:
            self._external.check_unchanged()

    @property
    def _external(self) -> ExternalFiles | None:
        model = self.request.model
        return model.files if isinstance(model, Snapshot) else None

    def _files(self, names: list[str]) -> dict[str, str] | None:
        """Returns the hash of each file of external data, `None` if one cannot be read."""
        if not names:
            return {}
        external = self._external
        if external is None:
            return None
        try:
            return {name: external.digest(name) for name in names}
        except InvalidModelError:
            return None  # the compiler says what is wrong with it


def _libraries(program: Program) -> dict[str, str]:
    paths = [library.path for library in program.libraries]
    return {str(path): stamp(path) for path in paths if path.is_absolute()}
