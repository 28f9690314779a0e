"""Limits of a model's resources: bytes, nodes, threads, nesting, names, seconds."""

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
"""Bytes that a process can address on current machines."""

_MOST_DIMENSIONS = 64
"""Maximum number of dimensions of a NumPy array."""


@dataclass(frozen=True)
class Limits:
    """Limits beyond which a model is refused with a `LimitExceededError`, before it takes the
    resources.

    The defaults refuse what no machine can do. A service that compiles models of unknown origin
    sets lower limits. See docs/limits.md.
    """

    tensor_bytes: int = (1 << 64) - 1
    """Bytes of any tensor of the model, with an empty axis counted as 1. The default is that high
    because outputs need no memory before the model runs.
    """
    constant_bytes: int = 4 << 30
    """Bytes of all tensors that are computed, or made dense, while compiling. In addition, eight
    times the bytes of the model's own tensors are allowed. Beyond that, folding stops, or the model
    is refused.
    """
    arena_bytes: int = ADDRESS_SPACE
    """Bytes of all intermediate tensors of a run, as planned."""
    output_bytes: int = (1 << 64) - 1
    """Bytes of all outputs of a run together."""
    nodes: int = 1_000_000
    """Nodes in the graph, its subgraphs and functions; for a `.mlir` file, ops."""
    body_nodes: int = 20_000
    """Nodes of functions, branches and loops that are expanded, all together."""
    threads: int = max(256, 4 * (os.cpu_count() or 1))
    """OpenMP threads of a run."""
    nesting: int = 32
    """Depth of nested graphs, of nested functions, and of brackets in a `.mlir` file."""
    name_length: int = 65_536
    """Characters of a name in the model."""
    kept_bytes: int = 1 << 30
    """Bytes of the programs that stay compiled for one model with symbolic dimensions: their code,
    arenas and copies of constants. Nothing is refused: the least recently used programs are freed,
    except the current one.
    """
    seconds: float = 3600.0
    """Seconds of each compilation: of a model of fixed shapes, or for one set of shapes. The
    default far exceeds the time of the largest models, and ends endless compilations. It is checked
    between passes, between nodes and between ops. LLVM and a backend's library cannot be
    interrupted, so a compilation may exceed it by their largest step.
    """

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
        """Returns the limits that differ from the defaults, in Python's syntax."""
        values = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        others = [
            f"{name}={value}" for name, (value, default) in values.items() if value != default
        ]
        return f"Limits({', '.join(others)})"

    @property
    def refusals(self) -> list[int]:
        """Returns the limits that affect which models are refused, except the time."""
        others = ("kept_bytes", "seconds")
        return [getattr(self, field.name) for field in fields(self) if field.name not in others]

    def check(self, limit: str, found: float, what: str) -> None:
        """Refuses a size that exceeds the limit of that name.

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
    """Bytes of constants computed so far."""
    given_bytes: int = 0
    """Bytes of the model's own constants."""


DEFAULT_LIMITS = Limits()

_FOLDED_PER_GIVEN = 8
"""Bytes of computed constants for each byte of the model's: 8-bit weights become floats that are
scaled, shifted and transposed.
"""

_NO_END = _Budget(DEFAULT_LIMITS, math.inf)
_current: ContextVar[_Budget] = ContextVar("limits", default=_NO_END)


def current_limits() -> Limits:
    """Returns the limits of this thread's compilation, or else the defaults."""
    return _current.get().limits


@contextmanager
def limited(limits: Limits) -> Generator[None]:
    """Sets the limits of compilations in the context, for this thread, and starts their time.

    Inside of another compilation with the same limits, the outer time continues.
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
    """Ends a compilation that is out of time.

    Raises:
        LimitExceededError: the time is over.
    """
    budget = _current.get()
    if budget.deadline == math.inf:
        return
    late = time.perf_counter() - budget.deadline
    if late > 0:
        seconds = budget.limits.seconds
        raise LimitExceededError("seconds", "compiling takes too long", seconds + late, seconds)


def in_time(items: Iterable[_Item]) -> Generator[_Item]:
    """Yields the items of a snapshot, as long as the compilation has time.

    Raises:
        LimitExceededError: the time is over.
    """
    for item in tuple(items):
        check_time()
        yield item


def spanned_bytes(shape: Sequence[int], item_bytes: int) -> int:
    """Returns the bytes of a tensor, with an empty axis counted as 1.

    So an empty tensor cannot have arbitrarily long other axes, either.
    """
    return math.prod(size or 1 for size in shape) * item_bytes


def check_tensor(shape: Sequence[int], item_bytes: int, what: str) -> int:
    """Returns the bytes of a tensor after a check of its size; see `spanned_bytes`.

    Raises:
        LimitExceededError: it has too many bytes.
        InvalidModelError: it has more dimensions than a NumPy array may have.
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
    """Refuses a tensor that is too large to compute while compiling, in addition to earlier ones.

    Raises:
        LimitExceededError: it is too large.
    """
    size = check_tensor(shape, item_bytes, what)
    if not take_constant_bytes(size):
        listed = f"bytes of {what} of shape [{', '.join(map(str, shape))}]"
        found = size + _current.get().computed_bytes
        limit = current_limits().constant_bytes
        text = f"{listed}, and of others that are computed while compiling"
        raise LimitExceededError("constant_bytes", text, found, limit)


def note_constants(size: int) -> None:
    """Adds the bytes of the model's own tensors, which raise the limit of computed constants."""
    budget = _current.get()
    if budget is not _NO_END:
        budget.given_bytes += size


def take_constant_bytes(size: int) -> bool:
    """True if a constant of so many bytes may be computed; the budget shrinks accordingly."""
    budget = _current.get()
    computed = budget.computed_bytes + size
    if computed > budget.limits.constant_bytes + _FOLDED_PER_GIVEN * budget.given_bytes:
        return False
    if budget is not _NO_END:
        budget.computed_bytes = computed
    return True
