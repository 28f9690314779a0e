"""Choices among ways to compute one thing that were measured for it, and trials of others.

A *problem* is a text that says all that a choice depends on: sizes, strides, threads. Passes that
choose ask `choice_for` before they estimate. What is known comes with the calibration of the
compilation: from a file, or what `compile(tune=…)` found on this machine.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from byoc_mlir.calibration import current_calibration

TUNED = "tuned"
"""The group of the measurements that say which way was fastest, by problem."""

USUAL = "usual"
"""Of schedules: the loops or tiles that are written where nothing else is said."""


@dataclass
class Question:
    """A choice that a compilation had."""

    candidates: tuple[str, ...]
    """All ways; which one is taken without a choice, its pass knows."""
    nodes: set[str] = field(default_factory=set[str])
    """The ONNX nodes that it was asked for."""
    kernels: set[str] = field(default_factory=set[str])
    """The functions of the host that it was asked for."""
    taken: str = ""

    @property
    def is_of_schedule(self) -> bool:
        """Whether it is asked for loops and tiles, of an algorithm that is chosen."""
        return USUAL in self.candidates


@dataclass
class Trial:
    """A compilation to find out how long things take.

    Args:
        choices: what it takes, in place of what is known.
    """

    choices: Mapping[str, str]
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    """By problem."""


_trial: ContextVar[Trial | None] = ContextVar("trial", default=None)


@contextmanager
def trying(trial: Trial) -> Generator[None]:
    """What this thread compiles inside is that trial."""
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
    """The way to take; `None` where nothing is known.

    Args:
        problem: all that the choice depends on.
        candidates: the names of the ways there are.
        nodes: the ONNX nodes that it is for.
        kernel: or the function of the host.
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
    """Tells a trial what was taken in the end."""
    trial = _trial.get()
    if trial is not None and problem in trial.questions:
        trial.questions[problem].taken = choice
