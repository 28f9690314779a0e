"""What regions take in both places, for the next one that is alike: a part of the rates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.func import FuncOp

from byoc_mlir.compiler.cache.fingerprint import digest
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.partition.alone import alone
from byoc_mlir.compiler.rates import VERDICTS, keep_in_part
from byoc_mlir.rates import current_rates, positive
from byoc_mlir.runtime.report import RegionTimes

_WEIGHT = re.compile(r'#relay\.weight<"[^"]*", "[^"]*">')
_NUMBERS = re.compile(r'("[^"]*")|\d+')


@dataclass(frozen=True)
class Keys:
    """What a verdict on a region is kept by."""

    alike: str
    """The same for regions that compute alike: names and numbers of weights do not matter."""
    own: str
    """The same for a region of a model at all sizes: known by its weights."""

    @staticmethod
    def of(region: FuncOp, options: CompileOptions) -> Keys:
        """Those of an outlined region, as it is compiled."""
        text = str(alone(region))
        said = (options.targets, options.threads, options.denormals, options.disable)
        alike = digest(_WEIGHT.sub("weight", text), *said)
        if _WEIGHT.search(text) is None:
            return Keys(alike, alike)
        return Keys(alike, digest(_NUMBERS.sub(lambda one: one[1] or "", text), *said))


@dataclass
class Verdicts:
    """The times of regions that were measured."""

    times: dict[str, RegionTimes]

    @staticmethod
    def of_json(document: Any) -> Verdicts:
        """Those that a file has.

        Raises:
            TypeError, KeyError, ValueError, AttributeError: it is something else.
        """
        found: Mapping[str, Any] = {} if document is None else document
        return Verdicts({str(key): _read(one) for key, one in found.items()})

    def as_json(self) -> dict[str, Any]:
        """All of them."""
        return {key: _written(times) for key, times in self.times.items()}

    def find(self, keys: Keys) -> RegionTimes | None:
        """What was measured for the region, at whatever sizes, or for one that is alike."""
        found = self.times.get(keys.own) or self.times.get(keys.alike)
        if found is not None:
            self.times[keys.own] = found
        return found

    def keep(self, keys: Keys, times: RegionTimes) -> None:
        """Keeps what was measured, in the cache, too."""
        self.times[keys.own] = self.times[keys.alike] = times
        keep_in_part(VERDICTS, dict.fromkeys((keys.own, keys.alike), _written(times)))


def known_verdicts() -> Verdicts:
    """Those of this compilation's rates."""
    return current_rates().part(VERDICTS, Verdicts.of_json)


def _written(times: RegionTimes) -> dict[str, Any]:
    return {
        "backend": times.backend,
        "backend_milliseconds": times.backend_milliseconds,
        "host_milliseconds": times.host_milliseconds,
    }


def _read(document: Any) -> RegionTimes:
    backend, host = (
        positive(document[name], name) for name in ("backend_milliseconds", "host_milliseconds")
    )
    return RegionTimes(str(document["backend"]), "measured", backend, host)
