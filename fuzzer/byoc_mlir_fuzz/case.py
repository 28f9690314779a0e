"""Cases of the fuzzer, and their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Feeds: TypeAlias = Mapping[str, Array]

Kind: TypeAlias = Literal[
    "agrees",
    "invalid",
    "undecided",
    "ill-conditioned",
    "refused",
    "crash",
    "hang",
    "untyped error",
    "failed stage",
    "wrong value",
    "nondeterminism",
]
"""Outcome of a case.

- `agrees`: the outputs equal an oracle's; for a mutated model: success or a typed error.
- `invalid`: no oracle runs the model, and it is refused.
- `undecided`: the model runs, but no oracle has an answer.
- `ill-conditioned`: the outputs differ, but the oracle's own outputs differ as much when its inputs
  change by a rounding error.
- `refused`: every oracle that knows the ops runs the model, and it is refused.
- All others are failures; `failed stage` is a `CompilationError` or `ExecutionError` for a model
  that the oracles run.
"""

FAILURES: tuple[Kind, ...] = (
    *("crash", "hang", "untyped error", "failed stage", "wrong value"),
    "nondeterminism",
)


@dataclass(frozen=True)
class Case:
    """Model, with the inputs of one or more runs."""

    name: str
    """Name, `seed/number`, from which the case can be generated again."""
    model: bytes
    """An ONNX model, or the text of an `.mlir` file."""
    feeds: tuple[Feeds, ...] = ()
    form: Literal["onnx", "mlir"] = "onnx"
    mutated: bool = False
    """True if only survival counts: success or a typed error."""


@dataclass(frozen=True)
class Settings:
    """Settings for the run of a case."""

    targets: tuple[str, ...] | None = None
    """Targets, as in `byoc_mlir.compile`."""
    backends: tuple[str, ...] = ()
    """Modules that register backends."""
    threads: int = 1
    memory: int = 6 << 30
    """Maximum bytes of a worker's address space."""
    interpreter: bool = False
    """True if models run in the interpreter tier instead of being compiled."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case, with its details."""

    kind: Kind
    message: str = ""
    """Message for people; an error's begins with its type."""
    signature: str = ""
    """Common part of the messages of failures with one cause, as far as that can be derived."""
    placements: Mapping[str, int] = field(default_factory=Counter[str])
    """Number of nodes by placement."""

    @property
    def failed(self) -> bool:
        return self.kind in FAILURES
