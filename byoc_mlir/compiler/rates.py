"""The rates of a compilation: from a file, or what this process measures and the cache keeps."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, TypeVar

from byoc_mlir.compiler.cache.fingerprint import digest, machine_and_software
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.kernels.costs import MEASURED, Table
from byoc_mlir.rates import Document, Rates
from byoc_mlir.runtime.cpu import model_name
from byoc_mlir.runtime.libraries import find_openmp

_Table = TypeVar("_Table", bound=Table)


@cache
def process_rates() -> Rates:
    """What this process has measured so far, and what others of the same machine left."""
    return Rates(measure={kind.name: partial(_kept, kind) for kind in MEASURED})


def rates_of(document: Document | None) -> Rates:
    """The rates that a file says, and no others; without one, those of the process."""
    return process_rates() if document is None else Rates(document, may_measure=False)


def kept_rates(kind: type[_Table]) -> _Table | None:
    """A table as the cache has it for this machine, if it has one."""
    place = _place(kind)
    found = None if place is None else place[0].read(place[1])
    if found is None:
        return None
    try:
        return kind.of_json(found.document)
    except (ValueError, KeyError, TypeError):
        return None


def _kept(kind: type[Table]) -> Any:
    """A table as the cache has it, else measured."""
    found = kept_rates(kind)
    if found is not None:
        return found.as_json()
    if find_openmp() is None:
        return None  # which kernels need: what is assumed stands
    from byoc_mlir.lowering.calibration import MEASURES

    measured = MEASURES[kind]().as_json()
    place = _place(kind)
    if place is not None:
        place[0].write(place[1], dict(measured))
    return measured


def _place(kind: type[Table]) -> tuple[Cache, str] | None:
    """Where the cache keeps a table: for one processor, instruction set and version of all that
    measures it.
    """
    opened, surroundings = Cache.open(), machine_and_software()
    if opened is None or surroundings is None:
        return None
    return opened, digest("rates", kind.name, model_name(), surroundings)
