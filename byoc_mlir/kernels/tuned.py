"""Tuned choices: the fastest way that was measured for a problem, and the trials that measure
it.

A *problem* is a text with everything that a choice depends on: sizes, strides, threads. Passes call
`choice_for` before they estimate. Known choices come with the compilation's calibration: from a
file, or from `compile(tune=…)` on this machine.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from byoc_mlir.calibration import current_calibration

TUNED = "tuned"
"""Group of the measurements that hold the fastest choice for each problem, and the ratio of each
model that was tuned."""

USUAL = "usual"
"""Name of the default schedule: the loops or tiles without a tuned choice."""


@dataclass
class Question:
    """Choice that a compilation had to make."""

    candidates: tuple[str, ...]
    """Names of all ways; the pass knows which of them is its default."""
    nodes: set[str] = field(default_factory=set[str])
    """ONNX nodes that the choice is for."""
    kernels: set[str] = field(default_factory=set[str])
    """Host functions that the choice is for."""
    taken: str = ""

    @property
    def is_of_schedule(self) -> bool:
        """True if the choice is among schedules of one algorithm, not among algorithms."""
        return USUAL in self.candidates


@dataclass
class Trial:
    """Compilation that measures alternatives.

    Args:
        choices: choices by problem, which replace the known choices.
    """

    choices: Mapping[str, str]
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    """Choices that the compilation faced, by problem."""


_trial: ContextVar[Trial | None] = ContextVar("trial", default=None)


@contextmanager
def trying(trial: Trial) -> Generator[None]:
    """Applies `trial` to compilations of this thread in the `with` body."""
    token = _trial.set(trial)
    try:
        yield
    finally:
        _trial.reset(token)


def choice_for(
    problem: str,
    candidates: Sequence[str],
    *,
    nodes: Collection[str] = (),
    kernel: str | None = None,
) -> str | None:
    """Returns the tuned choice for a problem, or `None` if none is known.

    Args:
        problem: text of everything that the choice depends on.
        candidates: names of the available ways.
        nodes: ONNX nodes that the choice is for.
        kernel: host function that the choice is for, instead of nodes.
    """
    trial = _trial.get()
    if trial is None:
        known = current_calibration().find(f"{TUNED}/{problem}")
        return known.text if known is not None and known.text in candidates else None
    question = trial.questions.setdefault(problem, Question(tuple(candidates)))
    question.nodes.update(nodes)
    if kernel is not None:
        question.kernels.add(kernel)
    choice = trial.choices.get(problem)
    return choice if choice in candidates else None


def took(problem: str, choice: str) -> None:
    """Reports to the current trial which way the pass chose for a problem."""
    trial = _trial.get()
    if trial is not None and problem in trial.questions:
        trial.questions[problem].taken = choice
