"""What was measured on a machine, and decides what is made: in named parts, as a file if wanted.

Each part belongs to whoever measures it, who says how it is written as JSON: rates of kernels,
times of a library's primitives, verdicts on regions. The same file gives the same decisions.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar, cast

from byoc_mlir.errors import ByocError
from byoc_mlir.files import read_file

Document: TypeAlias = Mapping[str, Any]
"""The parts as JSON, by name."""

_VERSION = 1


class Part(Protocol):
    """What one of those who measure knows."""

    def as_json(self) -> Any:
        """What `Rates.part` is given to read when a file has it."""
        ...


_Part = TypeVar("_Part", bound=Part)


class Rates:
    """What is known so far.

    Args:
        document: what a file or another process says.
        measure: what measures a part that is not there, and gives its JSON.
        may_measure: whether anything may be measured; if not, what is not known is estimated.
    """

    def __init__(
        self,
        document: Document | None = None,
        measure: Mapping[str, Callable[[], Any]] | None = None,
        *,
        may_measure: bool = True,
    ):
        self.may_measure = may_measure
        self._document = dict(document or {})
        self._measure = measure if measure is not None and may_measure else {}
        self._parts: dict[str, Part] = {}
        self.seconds = 0.0
        """What measuring parts has taken so far."""

    def part(self, name: str, read: Callable[[Any], _Part]) -> _Part:
        """A part, the same one for all who ask.

        Args:
            read: makes it from its JSON; from `None` where nothing is known.

        Raises:
            ByocError: the file has something else under that name.
        """
        if name not in self._parts:  # without a lock, which a fork would leave locked
            if name not in self._document and name in self._measure:
                start = time.perf_counter()
                self._document[name] = self._measure[name]()
                self.seconds += time.perf_counter() - start
            self._parts.setdefault(name, _read(name, self._document.get(name), read))
        return cast(_Part, self._parts[name])

    def as_json(self) -> dict[str, Any]:
        """All parts; those that nobody asked for are as they were read."""
        parts = {name: part.as_json() for name, part in self._parts.copy().items()}
        return {name: part for name, part in {**self._document, **parts}.items() if part}


_default = Rates()
_current: ContextVar[Rates] = ContextVar("rates", default=_default)


def current_rates() -> Rates:
    """The rates of the compilation that this thread is in; else those of a process on its own."""
    return _current.get()


@contextmanager
def using(rates: Rates) -> Generator[None]:
    """The rates of what this thread compiles inside."""
    token = _current.set(rates)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def using_file(path: str) -> Generator[None]:
    """The rates that a file says, and no others; without a path, those that are used already.

    Raises:
        ByocError: as `read_rates`.
    """
    if not path:
        yield
        return
    with using(Rates(read_rates(path), may_measure=False)):
        yield


def read_rates(path: str | Path) -> dict[str, Any]:
    """The parts in a file that `write_rates` wrote.

    Raises:
        ByocError: there is no such file, or it holds something else.
    """
    try:
        found: Any = json.loads(read_file(path, ByocError))
        if found["version"] != _VERSION:
            raise ValueError(f"version is {found['version']!r}, expected {_VERSION}")
        return {str(name): part for name, part in found["parts"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ByocError(
            f"'{path}' holds no rates ({type(error).__name__}: {error}); `byoc compile"
            " --write-rates FILE` writes such a file"
        ) from error


def write_rates(rates: Rates, path: str | Path) -> None:
    """Writes all that is known to a JSON file.

    Raises:
        ByocError: the file cannot be written.
    """
    document = {"version": _VERSION, "parts": rates.as_json()}
    try:
        Path(path).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise ByocError(f"the rates cannot be written: {error}") from error


def positive(value: object, name: str) -> float:
    """A number of a file that something is divided by, or that is a time.

    Raises:
        ValueError: it is not above 0, or not finite.
    """
    number = float(cast(float, value))
    if not 0 < number < math.inf:
        raise ValueError(f"{name} is {number}, accepted are numbers above 0")
    return number


def _read(name: str, document: Any, read: Callable[[Any], _Part]) -> _Part:
    try:
        return read(document)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ByocError(
            f"the rates' part '{name}' cannot be read ({type(error).__name__}: {error}); `byoc"
            " compile --write-rates FILE` writes such a file"
        ) from error
