"""The calibration store: all measurements of a machine that affect compilation.

A measurement has a key, `convolutions/products`, whose first part is its group: parameters of
kernels, times of a library's primitives, times of regions, choices of tuning. A compilation
measures the parameters of kernels only. It reads the others, if `measuring` let an earlier one
measure them. The store comes from a file (`compile(calibration=FILE)`), which gives the same code
in every process, or from the cache of this machine.
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
    """Subject of the measurement: `<group>/<all that the value depends on>`."""
    unit: str
    source: str
    """Instrument of the measurement: a kernel, a library and its version, a backend."""
    value: float | str

    @property
    def number(self) -> float:
        """Returns the value as a positive number, such as a time or a divisor.

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
        """Returns the value as a choice.

        Raises:
            ByocError: it is a number.
        """
        if not isinstance(self.value, str):
            raise ByocError(f"the measurement '{self.key}' is {self.value!r}, accepted are texts")
        return self.value


Group: TypeAlias = Mapping[str, Measurement]
"""Measurements of one group, by key."""


class Kept(Protocol):
    """Storage of a machine's measurements for other processes."""

    def read(self, group: str) -> Iterable[Measurement]:
        """Returns the stored measurements of a group; measures first what every machine needs."""
        ...

    def write(self, group: str, new: Sequence[Measurement]) -> None:
        """Adds measurements to a group."""
        ...


_View = TypeVar("_View")


class Calibration:
    """The measurements that are known so far.

    Args:
        known: measurements of a file, or of another process.
        kept: storage of further measurements, and of new ones.
        is_fixed: True disables measurements, also of compilations that `measuring` lets measure.
    """

    def __init__(
        self,
        known: Iterable[Measurement] = (),
        kept: Kept | None = None,
        *,
        is_fixed: bool = False,
    ):
        self._is_fixed = is_fixed
        self.is_kept = kept is not None
        self._kept = kept
        self._groups: dict[str, dict[str, Measurement]] = {}
        self._asked: set[str] = set()
        self._new: dict[str, list[Measurement]] = {}
        self._views: dict[Callable[[Calibration], object], object] = {}
        self.seconds = 0.0
        """Total seconds of reading and measuring groups."""
        for one in known:
            self._put(one)

    @property
    def may_measure(self) -> bool:
        """True if this compilation measures latencies that others estimate."""
        return _measures.get() and not self._is_fixed

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
        """Returns the view that `make` builds from the measurements, built once and shared.

        Callers that add measurements also update the view.
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
        """Stores new measurements for other processes."""
        new, self._new = self._new, {}
        for group, measurements in new.items():
            if self._kept is not None:
                self._kept.write(group, measurements)

    def as_json(self) -> dict[str, Any]:
        """Returns all measurements in the form of a file."""
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
    """Returns the calibration of this thread's compilation, or else a process-wide default."""
    return _current.get()


@contextmanager
def using(calibration: Calibration) -> Generator[None]:
    """Sets the calibration of compilations in the context, for this thread."""
    token = _current.set(calibration)
    try:
        yield
    finally:
        _current.reset(token)


_measures: ContextVar[bool] = ContextVar("measures", default=False)


@contextmanager
def measuring() -> Generator[None]:
    """Allows compilations in the context to measure the latencies that others estimate.

    The calibration keeps them, so later compilations use them too.
    """
    token = _measures.set(True)
    try:
        yield
    finally:
        _measures.reset(token)


@contextmanager
def using_file(path: str) -> Generator[None]:
    """Uses only the calibration of a file in the context; an empty path changes nothing.

    Raises:
        ByocError: as `read_calibration`.
    """
    if not path:
        yield
        return
    with using(calibration_of_document(read_calibration(path))):
        yield


def calibration_of_document(document: Document) -> Calibration:
    """Returns a calibration with the measurements of a document; nothing is measured.

    Raises:
        ByocError: the document is no collection of measurements.
    """
    return Calibration(measurements_of(document), is_fixed=True)


def measurements_of(document: Document) -> list[Measurement]:
    """Returns the measurements of a document.

    Raises:
        ByocError: the document has another form.
    """
    try:
        return [
            Measurement(key, str(one["unit"]), str(one["source"]), _value(one["value"]))
            for key, one in document.items()
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ByocError(
            f"the calibration cannot be read ({type(error).__name__}: {error}); {_HOW_TO_WRITE}"
        ) from error


def _value(value: object) -> float | str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a value is {value!r}, accepted are numbers and texts")
    return float(value)


def read_calibration(path: str | Path) -> Document:
    """Reads the measurements in a file that `write_calibration` wrote.

    Raises:
        ByocError: there is no such file, or it has another form.
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
    """Writes all known measurements to a JSON file.

    Raises:
        ByocError: the file cannot be written.
    """
    document = {"version": _VERSION, "measurements": calibration.as_json()}
    try:
        Path(path).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise ByocError(f"the calibration cannot be written: {error}") from error
