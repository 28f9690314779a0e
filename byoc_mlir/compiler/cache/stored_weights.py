"""Weights of a model's programs in a cache: each is stored once, and shared among programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from byoc_mlir.compiler.cache.fingerprint import digest
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.errors import ArtifactError
from byoc_mlir.records import record
from byoc_mlir.runtime.files.serialise import Blob, decode, encode
from byoc_mlir.runtime.program import Array

_LEAST_BYTES = 1 << 12
"""Minimum bytes of a weight to store; smaller weights stay with their program."""


@record
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
        self._written: set[str] = set()
        """Keys of the packs that this process wrote."""

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
            self._written.add(key)
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
            container = self._cache.read(key, is_hashed=key not in self._written)
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
