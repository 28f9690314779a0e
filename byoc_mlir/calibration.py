"""The store of costs: all that was measured on a machine and decides what is compiled.

A measurement has a key, `convolutions/products`, whose first part is its group: calibration of
kernels, times of a library's primitives, of regions, choices that tuning made. Pruning,
profitability and tuning ask the store; who measures adds to it. It is read from a file
(`compile(calibration=FILE)`), which gives the same code in every process, or from what the cache
has of this machine.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from byoc_mlir.errors import ByocError
from byoc_mlir.files import read_file

Document: TypeAlias = Mapping[str, Any]
"""Measurements as JSON: by key, their other fields."""

_VERSION = 2

_HOW_TO_WRITE = "`byoc compile --write-calibration FILE` writes such a file"


class Measurement(NamedTuple):
    """One number, or one choice, that was measured."""

    key: str
    """What was measured: `<group>/<all that the value depends on>`."""
    unit: str
    source: str
    """What it was measured with: a kernel, a library and its version, a backend."""
    value: float | str

    @property
    def number(self) -> float:
        """The value as a number that something is divided by, or that is a time.

        Raises:
            ByocError: it is not above 0, or not finite.
        """
        if isinstance(self.value, str) or not 0 < self.value < math.inf:
            raise ByocError(
                f"the measurement '{self.key}' is {self.value!r}, accepted are numbers above 0"
            )
        return self.value

    @property
    def text(self) -> str:
        """The value as a choice.

        Raises:
            ByocError: it is a number.
        """
        if not isinstance(self.value, str):
            raise ByocError(f"the measurement '{self.key}' is {self.value!r}, accepted are texts")
        return self.value


Group: TypeAlias = Mapping[str, Measurement]
"""Measurements by key, of one group."""


class Kept(Protocol):
    """Where a machine's measurements are kept for other processes."""

    def read(self, group: str) -> Iterable[Measurement]:
        """Returns what is kept of a group; what a machine has to know of it is measured first."""
        ...

    def write(self, group: str, new: Sequence[Measurement]) -> None:
        """Adds measurements to a group."""
        ...


_View = TypeVar("_View")


class Calibration:
    """The measurements that are known so far.

    Args:
        known: those of a file, or of another process.
        kept: where others are, and where new ones go.
        may_measure: whether anything may be measured; if not, what is not known is estimated.
    """

    def __init__(
        self,
        known: Iterable[Measurement] = (),
        kept: Kept | None = None,
        *,
        may_measure: bool = True,
    ):
        self.may_measure = may_measure
        self.is_kept = kept is not None
        self._kept = kept
        self._groups: dict[str, dict[str, Measurement]] = {}
        self._asked: set[str] = set()
        self._new: dict[str, list[Measurement]] = {}
        self._views: dict[Callable[[Calibration], object], object] = {}
        self.seconds = 0.0
        """Time in seconds that reading and measuring groups took so far."""
        for one in known:
            self._put(one)

    def group(self, name: str) -> Group:
        """Returns the measurements of a group."""
        if self._kept is not None and name not in self._asked:
            start = time.perf_counter()
            for one in self._kept.read(name):
                self._put(one)
            self._asked.add(name)  # threads that ask meanwhile read, too: a fork may leave a lock
            self.seconds += time.perf_counter() - start
        return self._groups.get(name, {})

    def find(self, key: str) -> Measurement | None:
        """Returns a measurement, if it is known."""
        return self.group(_group_of(key)).get(key)

    def view(self, make: Callable[[Calibration], _View]) -> _View:
        """Returns what a function makes of the measurements, made once for all who ask; who adds to
        them adds to it.
        """
        if make not in self._views:
            self._views.setdefault(make, make(self))
        return cast(_View, self._views[make])

    def add(self, *measurements: Measurement) -> None:
        """Adds new measurements, for this process until `save` is called."""
        for one in measurements:
            self._put(one)
            self._new.setdefault(_group_of(one.key), []).append(one)

    def save(self) -> None:
        """Hands new measurements to other processes."""
        new, self._new = self._new, {}
        for group, measurements in new.items():
            if self._kept is not None:
                self._kept.write(group, measurements)

    def as_json(self) -> dict[str, Any]:
        """All measurements, as they are in a file."""
        return {
            one.key: {"unit": one.unit, "source": one.source, "value": one.value}
            for group in self._groups.copy().values()
            for one in group.copy().values()
        }

    def _put(self, one: Measurement) -> None:
        self._groups.setdefault(_group_of(one.key), {})[one.key] = one


def _group_of(key: str) -> str:
    return key.partition("/")[0]


_default = Calibration()
_current: ContextVar[Calibration] = ContextVar("calibration", default=_default)


def current_calibration() -> Calibration:
    """Returns the calibration of the compilation that this thread is in; else those of a process on
    its own.
    """
    return _current.get()


@contextmanager
def using(calibration: Calibration) -> Generator[None]:
    """Makes calibration those of what this thread compiles inside."""
    token = _current.set(calibration)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def using_file(path: str) -> Generator[None]:
    """Uses what a file says, and nothing else; without a path, what is used already.

    Raises:
        ByocError: as `read_calibration`.
    """
    if not path:
        yield
        return
    with using(calibration_of_document(read_calibration(path))):
        yield


def calibration_of_document(document: Document) -> Calibration:
    """Returns calibration that know what a document says; nothing is measured.

    Raises:
        ByocError: the document is no collection of measurements.
    """
    return Calibration(measurements_of(document), may_measure=False)


def measurements_of(document: Document) -> list[Measurement]:
    """Returns the measurements that a document says.

    Raises:
        ByocError: it says something else.
    """
    try:
        return [
            Measurement(key, str(one["unit"]), str(one["source"]), _value(one["value"]))
            for key, one in document.items()
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ByocError(
            f"calibration cannot be read ({type(error).__name__}: {error}); {_HOW_TO_WRITE}"
        ) from error


def _value(value: object) -> float | str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a value is {value!r}, accepted are numbers and texts")
    return float(value)


def read_calibration(path: str | Path) -> Document:
    """Returns the measurements in a file that `write_calibration` wrote.

    Raises:
        ByocError: there is no such file, or it holds something else.
    """
    try:
        found: Any = json.loads(read_file(path, ByocError))
        if found["version"] != _VERSION:
            raise ValueError(f"version is {found['version']!r}, expected {_VERSION}")
        document = {str(key): dict(one) for key, one in found["measurements"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ByocError(
            f"'{path}' holds no calibration ({type(error).__name__}: {error}); {_HOW_TO_WRITE}"
        ) from error
    measurements_of(document)
    return document


def write_calibration(calibration: Calibration, path: str | Path) -> None:
    """Writes all that is known to a JSON file.

    Raises:
        ByocError: the file cannot be written.
    """
    document = {"version": _VERSION, "measurements": calibration.as_json()}
    try:
        Path(path).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise ByocError(f"the calibration cannot be written: {error}") from error
