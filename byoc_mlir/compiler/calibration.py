"""Calibration of a compilation: from a file, or from measurements of this process and the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from byoc_mlir.calibration import (
    Calibration,
    Document,
    Group,
    Measurement,
    calibration_of_document,
    measurements_of,
)
from byoc_mlir.compiler.cache.fingerprint import digest, machine_and_software, model_digest
from byoc_mlir.compiler.cache.folder import Cache, Kept
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import ByocError
from byoc_mlir.kernels.costs import MEASURED, Table
from byoc_mlir.kernels.tuned import TUNED
from byoc_mlir.runtime.system.cpu import model_name

_MOST_KEPT = 8192
"""Maximum number of measurements of a group in the cache; the newest ones are kept."""

_PROCESSES = 3
"""Number of processes that measure a table, each when it first requests it."""

_TABLES = {kind.name: kind for kind in MEASURED}


@cache
def process_calibration() -> Calibration:
    """Returns the measurements of this process, and those that other processes on this machine have
    stored in the cache.
    """
    return Calibration(kept=_Machine())


def calibration_of(document: Document | None) -> Calibration:
    """Returns the calibration of a file; without a file, the calibration of the process."""
    return process_calibration() if document is None else calibration_of_document(document)


def process_choices() -> dict[str, str]:
    """Returns the choices of tuning on this machine, by problem, from this process and from the
    cache.
    """
    return {
        problem: value for problem, value in _tuning_results().items() if isinstance(value, str)
    }


def _tuning_results() -> dict[str, float | str]:
    """Returns all results of tuning on this machine: choices by problem, ratios by model."""
    known = process_calibration().group(TUNED)
    return {key.removeprefix(f"{TUNED}/"): one.value for key, one in list(known.items())}


def model_key(request: Request) -> str | None:
    """Returns a key of the model of a request, as it is compiled here and now; `None` if there is
    no unique key.

    Raises:
        InvalidModelError: the model's file cannot be read.
    """
    model, surroundings = model_digest(request.model), machine_and_software()
    if model is None or surroundings is None:
        return None
    tuned = _tuning_results() if request.calibration is None else {}
    accepted = request.limits.refusals
    return digest(model, request.choices, accepted, surroundings, *([tuned] if tuned else []))


def keep_choices(request: Request, choices: Mapping[str, str], ratio: float) -> None:
    """Keeps the choices of tuning in this process and in the cache.

    Args:
        request: request of the tuned model.
        choices: the choices by problem; empty if nothing better was found.
        ratio: time of the tuned model over time of the untuned one.
    """
    calibration = process_calibration()
    calibration.add(
        *(Measurement(f"{TUNED}/{problem}", "way", "tune", one) for problem, one in choices.items())
    )
    key = _key_of_tuning(request)
    if key is not None:
        calibration.add(Measurement(key, "of the untuned time", "tune", ratio))
    calibration.save()


def tuned_before(request: Request) -> float | None:
    """Returns the ratio of an earlier tuning of the model, if the store has it."""
    key = _key_of_tuning(request)
    found = None if key is None else process_calibration().find(key)
    return None if found is None else found.number


def _key_of_tuning(request: Request) -> str | None:
    model = model_digest(request.model)
    return None if model is None else f"{TUNED}/{digest(model, request.choices)}"


def kept_calibration(kind: type[Table]) -> Table | None:
    """Returns a table from the cache of this machine, if there is one."""
    known = Calibration(_read(kind.name))
    return kind.of(known) if known.group(kind.name) else None


def _calibrated(kind: type[Table], known: Group) -> Sequence[Measurement]:
    """Measures a table in the first processes that request it, and keeps the shortest times.

    The measurements of a single process may all be under load.
    """
    runs, count = f"{kind.name}/run", f"{kind.name}/processes"
    processes = int(known[count].number) if count in known else 0
    if processes >= _PROCESSES:
        return ()
    from byoc_mlir.lowering.calibration import BENCHMARKS  # a process that measures nothing

    benchmark = BENCHMARKS[kind]
    if not benchmark.is_possible:
        return ()
    times = [
        min(time, known[key].number) if (key := f"{runs} {place}") in known else time
        for place, time in enumerate(benchmark.measure())
    ]
    return (
        Measurement(count, "processes", "", processes + 1),
        *(Measurement(f"{runs} {place}", "ms", "", time) for place, time in enumerate(times)),
        *benchmark.table(times).measurements(),
    )


class _Machine:
    """Measurements of this machine in the cache, by processor, instruction set and versions."""

    def read(self, group: str) -> Sequence[Measurement]:
        """Returns the stored measurements of a group; measures again until enough processes have
        contributed.
        """
        known = _read(group)
        kind = _TABLES.get(group)
        new = () if kind is None else _calibrated(kind, {one.key: one for one in known})
        if new:
            self.write(group, new)
        return (*known, *new)

    def write(self, group: str, new: Sequence[Measurement]) -> None:
        """Adds measurements to the group, and keeps measurements that other processes have added
        meanwhile.
        """
        place = _place(group)
        if place is None:
            return
        merged = {one.key: one for one in (*_read(group), *new)}
        last = Calibration([*merged.values()][-_MOST_KEPT:])
        place[0].write(place[1], last.as_json())


def _read(group: str) -> Sequence[Measurement]:
    """Reads a group from the cache; returns nothing if it is damaged."""
    place = _place(group)
    found = None if place is None else place[0].read(place[1])
    try:
        return () if found is None else measurements_of(found.document)
    except ByocError:
        return ()


def _place(group: str) -> tuple[Cache, str] | None:
    """Returns the cache and the key of a group. Calibration tables are cached even if programs are
    not.
    """
    kept: Kept = "calibration" if group in _TABLES else "programs"
    opened, surroundings = Cache.open(kept=kept), machine_and_software()
    if opened is None or surroundings is None:
        return None
    return opened, digest("measurements", group, model_name(), surroundings)


process_calibration()  # the same one for all threads
