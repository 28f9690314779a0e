"""How much a model may ask for: bytes, nodes, threads, nesting, names, seconds."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import TypeVar

from byoc_mlir.errors import ByocError, InvalidModelError, LimitExceededError

_Item = TypeVar("_Item")

ADDRESS_SPACE = 1 << 47
"""Bytes that a process can address on the machines there are."""

_MOST_DIMENSIONS = 64
"""Of an array of NumPy."""


@dataclass(frozen=True, repr=False)
class Limits:
    """What is refused, with a `LimitExceededError`, before memory or time is spent on it.

    The defaults refuse what no machine can do; a service that compiles models of strangers sets
    lower ones. See docs/limits.md.
    """

    tensor_bytes: int = (1 << 64) - 1
    """Of any tensor of the model, an axis without elements counted as one. Outputs need no memory
    before the model runs, hence so high."""
    constant_bytes: int = 4 << 30
    """Of tensors that are computed, or made dense, while compiling, all together; and as much as
    eight times the model's own tensors. More than that is not folded, or refused."""
    arena_bytes: int = ADDRESS_SPACE
    """Of all intermediate tensors of a run, as planned."""
    output_bytes: int = (1 << 64) - 1
    """Of all outputs of a run together."""
    nodes: int = 1_000_000
    """In the graph, its subgraphs and functions; for a `.mlir` file: ops."""
    body_nodes: int = 20_000
    """Of functions, branches and loops that are expanded, all together."""
    threads: int = max(256, 4 * (os.cpu_count() or 1))
    """OpenMP threads of a run."""
    nesting: int = 32
    """Of graphs in graphs, functions in functions, and of brackets in a `.mlir` file."""
    name_length: int = 65_536
    """Characters of a name in the model."""
    kept_bytes: int = 1 << 30
    """Of the programs that stay compiled for one model with symbolic dimensions: their code, arenas
    and copies of constants. Nothing is refused: those that were not used for longest go, and the
    one that is used stays."""
    seconds: float = 3600.0
    """For each compilation: that of a model of fixed shapes, or for one set of shapes. The default
    is far more than the largest models take, and ends what would never end. Looked at between
    passes, between nodes and between ops; LLVM and a backend's library cannot be interrupted, so it
    may take as long as the largest of their steps more."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            kind = (int, float) if field.name == "seconds" else int
            if not isinstance(value, kind) or isinstance(value, bool) or not value >= 0:
                what = "number of seconds" if field.name == "seconds" else "whole number"
                raise ByocError(
                    f"limits: {field.name} is {value!r}, accepted is a {what}, at least 0"
                )

    def __repr__(self) -> str:
        """Returns the limits that are not the defaults, as Python writes them."""
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        others = [
            f"{name}={value}" for name, (value, default) in values.items() if value != default
        ]
        return f"Limits({', '.join(others)})"

    @property
    def refusals(self) -> list[int]:
        """The limits that decide which models are refused, whatever the time it takes."""
        others = ("kept_bytes", "seconds")
        return [getattr(self, field.name) for field in fields(self) if field.name not in others]

    def check(self, limit: str, found: float, what: str) -> None:
        """Refuses what is larger than the limit of that name.

        Raises:
            LimitExceededError: `what` is too large.
        """
        accepted: float = getattr(self, limit)
        if found > accepted:
            raise LimitExceededError(limit, what, found, accepted)


@dataclass
class _Budget:
    limits: Limits
    deadline: float
    computed_bytes: int = 0
    """Of constants, so far."""
    given_bytes: int = 0
    """Of the model's own constants."""


DEFAULT_LIMITS = Limits()

_FOLDED_PER_GIVEN = 8
"""Bytes of computed constants for each byte of the model's: weights of bytes become floats that are
scaled, shifted and transposed."""

_NO_END = _Budget(DEFAULT_LIMITS, math.inf)
_current: ContextVar[_Budget] = ContextVar("limits", default=_NO_END)


def current_limits() -> Limits:
    """The limits of the compilation that this thread is in, else the defaults."""
    return _current.get().limits


@contextmanager
def limited(limits: Limits) -> Generator[None]:
    """The limits of what this thread compiles inside; the time begins to run.

    Inside of another compilation that has the same limits, its time goes on.
    """
    outer = _current.get()
    if outer.limits == limits and outer.deadline < math.inf:
        yield
        return
    token = _current.set(_Budget(limits, time.perf_counter() + limits.seconds))
    try:
        yield
    finally:
        _current.reset(token)


def check_time() -> None:
    """Ends a compilation whose time is over.

    Raises:
        LimitExceededError: it is.
    """
    budget = _current.get()
    if budget.deadline == math.inf:
        return
    late = time.perf_counter() - budget.deadline
    if late > 0:
        seconds = budget.limits.seconds
        raise LimitExceededError("seconds", "compiling takes too long", seconds + late, seconds)


def in_time(items: Iterable[_Item]) -> Generator[_Item]:
    """The items as they are now, one after the other, as long as a compilation has time.

    Raises:
        LimitExceededError: the time is over.
    """
    for item in tuple(items):
        check_time()
        yield item


def spanned_bytes(shape: Sequence[int], item_bytes: int) -> int:
    """The bytes of a tensor, an axis without elements counted as one.

    An array of no elements cannot have its other axes as long as it likes, either.
    """
    return math.prod(size or 1 for size in shape) * item_bytes


def check_tensor(shape: Sequence[int], item_bytes: int, what: str) -> int:
    """The bytes of a tensor, once they are found to be few enough; see `spanned_bytes`.

    Raises:
        LimitExceededError: they are not.
        InvalidModelError: it has more dimensions than an array of NumPy may have.
    """
    if len(shape) > _MOST_DIMENSIONS:
        raise InvalidModelError(
            f"{what} has {len(shape)} dimensions, accepted are up to {_MOST_DIMENSIONS}"
        )
    size = spanned_bytes(shape, item_bytes)
    if size > current_limits().tensor_bytes:
        listed = ", ".join(map(str, shape))
        current_limits().check("tensor_bytes", size, f"bytes of {what} of shape [{listed}]")
    return size


def check_constant(shape: Sequence[int], item_bytes: int, what: str) -> None:
    """Refuses a tensor that is too large to be computed while compiling, beside others.

    Raises:
        LimitExceededError: it is.
    """
    size = check_tensor(shape, item_bytes, what)
    if not take_constant_bytes(size):
        listed = f"bytes of {what} of shape [{', '.join(map(str, shape))}]"
        found = size + _current.get().computed_bytes
        limit = current_limits().constant_bytes
        text = f"{listed}, and of others that are computed while compiling"
        raise LimitExceededError("constant_bytes", text, found, limit)


def note_constants(size: int) -> None:
    """Notes the bytes of the model's own tensors; constants made of them may be as large."""
    budget = _current.get()
    if budget is not _NO_END:
        budget.given_bytes += size


def take_constant_bytes(size: int) -> bool:
    """True if a constant of so many bytes may be computed; the compilation has fewer left then."""
    budget = _current.get()
    computed = budget.computed_bytes + size
    if computed > budget.limits.constant_bytes + _FOLDED_PER_GIVEN * budget.given_bytes:
        return False
    if budget is not _NO_END:
        budget.computed_bytes = computed
    return True
