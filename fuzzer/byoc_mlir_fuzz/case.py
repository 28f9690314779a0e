"""What the fuzzer tries, and what came of it."""

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
"""How a case ends.

- `agrees`: as an oracle says; for a mutated model: success or a typed error.
- `invalid`: no oracle runs the model, and it is refused. `undecided`: no oracle gives an answer,
  and there is one.
- `ill-conditioned`: the answer differs, but so does the oracle's own when its inputs move by a
  rounding error.
- `refused`: every oracle that knows the ops runs the model, and it is refused.
- the rest are failures; `failed stage` is a `CompilationError` or `ExecutionError` about a model
  that the oracles run.
"""

FAILURES: tuple[Kind, ...] = (
    *("crash", "hang", "untyped error", "failed stage", "wrong value"),
    "nondeterminism",
)


@dataclass(frozen=True)
class Case:
    """One model, and the inputs to run it with, one after the other."""

    name: str
    """`seed/number`: enough to make it again."""
    model: bytes
    """An ONNX model, or the text of an `.mlir` file."""
    feeds: tuple[Feeds, ...] = ()
    form: Literal["onnx", "mlir"] = "onnx"
    mutated: bool = False
    """Whether only survival is asked for: success or a typed error."""


@dataclass(frozen=True)
class Settings:
    """How a case is run."""

    targets: tuple[str, ...] | None = None
    """As in `byoc_mlir.compile`."""
    backends: tuple[str, ...] = ()
    """Modules that register backends."""
    threads: int = 1
    memory: int = 6 << 30
    """Bytes of address space that a worker may have."""
    interpreter: bool = False
    """Whether models are run node by node, not compiled."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended."""

    kind: Kind
    message: str = ""
    """For people; of an error its type comes first."""
    signature: str = ""
    """What failures of one cause have in common, as far as one can tell."""
    placements: Mapping[str, int] = field(default_factory=Counter[str])
    """How many nodes ran where."""

    @property
    def failed(self) -> bool:
        return self.kind in FAILURES
