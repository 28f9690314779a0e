"""Programs of one model in the cache, specialisations or shape-polymorphic ones, and their
weights.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from byoc_mlir.compiler.cache.cached_model import CachedModel, ModelEntry
from byoc_mlir.compiler.cache.fingerprint import array_digest, digest, stamp
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.errors import ArtifactError
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.files.container import Container
from byoc_mlir.runtime.files.serialise import Blob, Json, decode, encode
from byoc_mlir.runtime.files.stored import decode_program, encode_program
from byoc_mlir.runtime.program import Array, ObjectCode, Program
from byoc_mlir.warned import warn_user

_LEAST_BYTES = 1 << 12
"""Minimum bytes of a weight to store; smaller weights stay with their program."""


@dataclass(frozen=True)
class StoredWeight:
    """Position of a weight in the cache."""

    pack: str
    """Key of the cache's entry."""
    number: int
    """Index of the weight in the entry."""


class StoredWeights:
    """Weights that the programs of one model share on disk and, once they are read, in memory.

    They are stored in packs: one with all weights of the first program, then one with the new
    weights of each further program.
    """

    def __init__(self, cache: Cache):
        self._cache = cache
        self._places: dict[str, StoredWeight] = {}
        self._packs: dict[str, tuple[Array, ...]] = {}

    def write(
        self, weights: Mapping[str, Array], check: Callable[[], None]
    ) -> dict[str, StoredWeight]:
        """Stores the large weights that are not stored yet; returns the positions of all large
        weights.

        Args:
            weights: by symbol; equal symbols mean equal weights.
            check: as for `Cache.write`.
        """
        large = {name: array for name, array in weights.items() if array.nbytes >= _LEAST_BYTES}
        new = sorted(large.keys() - self._places.keys())
        if new:
            key, blobs = digest("weights", new), list[Blob]()
            arrays = encode(tuple(large[name] for name in new), blobs)
            self._cache.write(key, {"arrays": arrays}, blobs, check)
            self._places |= {name: StoredWeight(key, number) for number, name in enumerate(new)}
        return {name: self._places[name] for name in large}

    def read(self, places: Mapping[str, StoredWeight]) -> dict[str, Array] | None:
        """Reads the weights at the given positions; `None` if a weight no longer exists."""
        found: dict[str, Array] = {}
        for name, place in places.items():
            pack = self._pack(place.pack)
            if pack is None or not 0 <= place.number < len(pack):
                return None
            found[name] = pack[place.number]
        self._places |= places
        return found

    def mapped(self, weights: Mapping[str, Array]) -> dict[str, Array]:
        """Returns the weights, stored ones as maps of their files, so that the system can evict
        unused pages.

        Weights that are in no file are returned unchanged.
        """
        places = {name: self._places[name] for name in weights if name in self._places}
        return {**weights, **(self.read(places) or {})}

    def _pack(self, key: str) -> tuple[Array, ...] | None:
        if key not in self._packs:
            container = self._cache.read(key)
            if container is None:
                return None
            try:
                arrays = decode(
                    tuple[Array, ...], container.document.get("arrays"), container.blobs
                )
            except ArtifactError:
                self._cache.delete(key)
                return None
            self._packs[key] = arrays
        return self._packs[key]


@dataclass(frozen=True)
class _Circumstances:
    """Warnings of a program's compilation, and the libraries that the program needs."""

    warnings: tuple[str, ...]
    libraries: Mapping[str, str]
    """Size and date of each shared library, by path."""


class StoredPrograms:
    """Reader and writer of the cached programs of a model that has an entry in the cache."""

    def __init__(self, model: CachedModel, entry: ModelEntry):
        self._model = model
        self.entry = entry
        self._weights = StoredWeights(model.cache)

    def change_entry(self, entry: ModelEntry) -> None:
        """Replaces the model's entry, in this object and in the cache."""
        self.entry = entry
        self._model.write_entry(entry)

    def key(self, shapes: Mapping[str, Shape], values: Mapping[str, Array]) -> str:
        """Returns the key of the program for inputs of these shapes, with these values."""
        sizes = {name: list(shape) for name, shape in shapes.items()}
        return self._key(sizes, {name: array_digest(array) for name, array in values.items()})

    def generic_key(self, number: int) -> str:
        """Returns the key of a shape-polymorphic program, by its number; numbers begin at 0."""
        return self._key("sized", number)

    def _key(self, *parts: object) -> str:
        entry = self.entry
        surroundings = (entry.files, entry.environment, entry.devices)
        return digest(self._model.key, *map(dict, surroundings), *parts)

    def read(self, key: str) -> Program | None:
        """Returns a program if it and its dependencies are present, and repeats its warnings."""
        start = time.perf_counter()
        container = self._model.cache.read(key)
        if container is None:
            return None
        try:
            said = decode(_Circumstances, container.document.get("circumstances"), container.blobs)
            program = self._program(container)
        except ArtifactError:
            self._model.cache.delete(key)
            return None
        if program is None or _libraries(program) != said.libraries:
            return None
        for text in said.warnings:
            warn_user(text)
        seconds = (("cache", time.perf_counter() - start),)
        report = replace(program.report, compile_seconds=seconds, pass_seconds=())
        return replace(program, report=report)

    def _program(self, container: Container) -> Program | None:
        document, blobs = container.document, container.blobs
        code = decode(ObjectCode, document.get("code"), blobs)
        places = decode(Mapping[str, StoredWeight], document.get("weights"), blobs)
        weights = self._weights.read(places)
        if weights is None:
            return None
        code = replace(code, weights={**code.weights, **weights})
        folder = Path(sys.prefix, "lib")
        return decode_program(document.get("program"), blobs, code, "the cache", folder)

    def write(self, key: str, program: Program, said: tuple[str, ...]) -> None:
        """Writes a program with the warnings of its compilation, unless the environment has changed
        meanwhile.

        Raises:
            InvalidModelError: external data was changed in place since it was hashed.
        """
        if not self.entry.is_current():
            return
        code, blobs = program.code, list[Blob]()
        assert isinstance(code, ObjectCode)
        places = self._weights.write(code.weights, self._check_unchanged)
        own = {name: array for name, array in code.weights.items() if name not in places}
        document: dict[str, Json] = {
            "program": encode_program(program, blobs),
            "code": encode(replace(code, weights=own), blobs),
            "weights": encode(places, blobs),
            "circumstances": encode(_Circumstances(said, _libraries(program)), blobs),
        }
        self._model.cache.write(key, document, blobs, self._check_unchanged)

    def with_weights_mapped(self, program: Program) -> Program:
        """Returns a program that was written to the cache, with its weights mapped from the cache's
        files.

        Only programs of a model file with fixed shapes change: no other program shares their
        weights.
        """
        model, code = self._model.request.model, program.code
        is_file = isinstance(model, Snapshot) and model.path is not None
        if not is_file or not all(info.is_static for info in self.entry.inputs):
            return program
        assert isinstance(code, ObjectCode)
        return replace(program, code=replace(code, weights=self._weights.mapped(code.weights)))

    def _check_unchanged(self) -> None:
        external = self._model.external
        if external is not None:
            external.check_unchanged()


def _libraries(program: Program) -> dict[str, str]:
    paths = [library.path for library in program.libraries]
    return {str(path): stamp(path) for path in paths if path.is_absolute()}
