"""The rates of a compilation: from a file, or what this process measures and the cache keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from byoc_mlir.compiler.cache.fingerprint import digest, machine_and_software, model_digest
from byoc_mlir.compiler.cache.folder import Cache, Kept
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import ArtifactError
from byoc_mlir.kernels.costs import MEASURED, Table
from byoc_mlir.kernels.tuned import PART, Tuned
from byoc_mlir.rates import Document, Rates
from byoc_mlir.runtime.files.serialise import decode, encode_fields
from byoc_mlir.runtime.system.cpu import model_name
from byoc_mlir.runtime.system.libraries import find_openmp

VERDICTS = "verdicts"
"""The part that says what regions were measured to take (`byoc_mlir.compiler.partition`)."""

_MOST_KEPT = 4096
"""So many entries of a part are kept in the cache, the newest ones."""

_PROCESSES = 3
"""So many measure a table, each when it first asks for it."""


@cache
def process_rates() -> Rates:
    """What this process has measured so far, and what others of the same machine left."""
    tables = {kind.name: partial(_kept, kind) for kind in MEASURED}
    parts = {name: partial(_kept_part, name) for name in (PART, VERDICTS)}
    return Rates(measure={**tables, **parts})


def rates_of(document: Document | None) -> Rates:
    """The rates that a file says, and no others; without one, those of the process."""
    return process_rates() if document is None else Rates(document, may_measure=False)


def process_choices() -> Mapping[str, str]:
    """What tuning found on this machine, by problem: in this process, or before it in others."""
    return process_rates().part(PART, Tuned.of_json).choices


def model_key(request: Request) -> str | None:
    """What tells the model of a request, as it is compiled here and now, from all others; `None`
    where that is not known.

    Raises:
        InvalidModelError: the model's file cannot be read.
    """
    model, surroundings = model_digest(request.model), machine_and_software()
    if model is None or surroundings is None:
        return None
    tuned = process_choices() if request.rates is None else {}
    accepted = request.limits.refusals
    return digest(model, request.choices, accepted, surroundings, *([dict(tuned)] if tuned else []))


def keep_choices(request: Request, choices: Mapping[str, str], ratio: float) -> None:
    """Keeps what tuning found, for this process and in the cache.

    Args:
        request: of the model that was tuned.
        choices: empty where nothing better was found.
        ratio: of the model's times.
    """
    process_rates().part(PART, Tuned.of_json).choices.update(choices)
    keep_in_part(PART, choices)
    done = _place_of_tuning(request)
    if done is not None:
        done[0].write(done[1], {"ratio": ratio})


def tuned_before(request: Request) -> float | None:
    """The ratio that tuning a model led to, where the cache knows of it."""
    place = _place_of_tuning(request)
    found = None if place is None else place[0].read(place[1])
    ratio = None if found is None else found.document.get("ratio")
    return ratio if isinstance(ratio, float) else None


def keep_in_part(name: str, entries: Mapping[str, Any]) -> None:
    """Adds what was found on this machine to what the cache has of a part."""
    place = _place(name)
    if place is not None and entries:
        cache, key = place
        merged = {**(_kept_part(name) or {}), **entries}
        cache.write(key, dict(list(merged.items())[-_MOST_KEPT:]))


def _kept_part(name: str) -> Any:
    place = _place(name)
    found = None if place is None else place[0].read(place[1])
    return None if found is None else found.document


def _place_of_tuning(request: Request) -> tuple[Cache, str] | None:
    """Where the cache says that a model was tuned."""
    model = model_digest(request.model)
    place = _place("tuning") if model is not None else None
    return None if place is None else (place[0], digest(place[1], model, request.choices))


def kept_rates(kind: type[Table]) -> Table | None:
    """A table as the cache has it for this machine, if it has one."""
    from byoc_mlir.lowering.calibration import CALIBRATIONS

    kept = _kept_times(kind)
    return CALIBRATIONS[kind].table(kept.milliseconds) if kept.processes else None


def _kept(kind: type[Table]) -> Any:
    """A table by the shortest times that the first processes which ask for it measure: one alone
    may not see the machine without its neighbours.
    """
    from byoc_mlir.lowering.calibration import CALIBRATIONS

    kept, calibration = _kept_times(kind), CALIBRATIONS[kind]
    may_measure = calibration.is_possible and find_openmp() is not None
    if kept.processes < _PROCESSES and may_measure:
        kept = kept.with_others(calibration.measure())
        place = _place(kind.name, "rates")
        if place is not None:
            place[0].write(place[1], encode_fields(kept, [], without=""))
    return calibration.table(kept.milliseconds).as_json() if kept.processes else None


@dataclass(frozen=True)
class _Times:
    """The shortest milliseconds that so many processes have measured."""

    processes: int = 0
    milliseconds: tuple[float, ...] = ()

    def with_others(self, others: Sequence[float]) -> _Times:
        """With those of one more process."""
        shortest = map(min, self.milliseconds or others, others)
        return _Times(self.processes + 1, tuple(shortest))


def _kept_times(kind: type[Table]) -> _Times:
    """What the cache has of this machine."""
    place = _place(kind.name, "rates")
    found = None if place is None else place[0].read(place[1])
    try:
        return _Times() if found is None else decode(_Times, found.document, found.blobs)
    except ArtifactError:
        return _Times()


def _place(name: str, kept: Kept = "programs") -> tuple[Cache, str] | None:
    """Where the cache keeps a part: for one processor, instruction set and version of all that
    measures it.
    """
    opened, surroundings = Cache.open(kept=kept), machine_and_software()
    if opened is None or surroundings is None:
        return None
    return opened, digest("times", name, model_name(), surroundings)


process_rates()  # the same one for all threads
