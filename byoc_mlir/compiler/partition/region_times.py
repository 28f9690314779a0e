"""Stored measurements of regions on their backend and on the host; equal regions share them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from byoc_mlir.calibration import Calibration, Measurement
from byoc_mlir.compiler.cache.fingerprint import digest
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.partition.alone import alone
from byoc_mlir.runtime.report import RegionTimes

REGIONS = "regions"
"""Calibration group of these measurements."""

_WEIGHT = re.compile(r'#relay\.weight<"[^"]*", "[^"]*">')
_NUMBERS = re.compile(r'("[^"]*")|\d+')


@dataclass(frozen=True)
class Keys:
    """Keys under which a region's times are stored."""

    alike: str
    """Key of equal regions: names and contents of weights do not matter."""
    own: str
    """Key of a region of a model at all sizes, identified by its weights."""

    @staticmethod
    def of(region: FuncOp, options: CompileOptions) -> Keys:
        """Returns the keys of an outlined region for the options of this compilation."""
        text = str(alone(region))
        said = (options.targets, options.threads, options.denormals, options.disable)
        alike = digest(_WEIGHT.sub("weight", text), *said)
        if _WEIGHT.search(text) is None:
            return Keys(alike, alike)
        return Keys(alike, digest(_NUMBERS.sub(lambda one: one[1] or "", text), *said))


def find_times(calibration: Calibration, keys: Keys) -> RegionTimes | None:
    """Returns the stored measurement of the region, or of one that is equal except for sizes."""
    found = _times(calibration, keys.own)
    if found is not None:
        return found
    found = _times(calibration, keys.alike)
    if found is not None:
        calibration.add(*_measurements(keys.own, found))
    return found


def keep_times(calibration: Calibration, keys: Keys, times: RegionTimes) -> None:
    """Keeps the measurement of a region."""
    for key in dict.fromkeys((keys.own, keys.alike)):
        calibration.add(*_measurements(key, times))


def _times(calibration: Calibration, key: str) -> RegionTimes | None:
    backend, host = (calibration.find(f"{REGIONS}/{key}/{place}") for place in ("backend", "host"))
    if backend is None or host is None:
        return None
    return RegionTimes(backend.source, "measured", backend.number, host.number)


def _measurements(key: str, times: RegionTimes) -> list[Measurement]:
    backend, host = times.backend_milliseconds, times.host_milliseconds
    assert backend is not None
    assert host is not None
    return [
        Measurement(f"{REGIONS}/{key}/backend", "ms", times.backend, backend),
        Measurement(f"{REGIONS}/{key}/host", "ms", "host", host),
    ]
