"""Tuning of a model: the search, and the storage of its results."""

from __future__ import annotations

from dataclasses import dataclass

from byoc_mlir.boundary import check_argument
from byoc_mlir.compiler.calibration import keep_choices, process_choices, tuned_before
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.tuning.search import Search, SearchResult
from byoc_mlir.errors import ByocError


@dataclass(frozen=True)
class TunedKernel:
    """Problem that has a new way to compute it, with its milliseconds in a run before and after."""

    problem: str
    before: str
    after: str
    milliseconds_before: float
    milliseconds_after: float


@dataclass(frozen=True)
class Tuning:
    """Result of tuning a model."""

    ratio: float
    """Time of the tuned model divided by the time of the untuned one; 1 if the model is
    unchanged."""
    kernels: tuple[TunedKernel, ...] = ()
    variants: int = 0
    """Number of variants that were compiled and measured."""
    reason: str = ""
    """Reason why nothing changed, or ""."""


def tune_model(request: Request, seconds: float) -> Tuning:
    """Searches for faster ways to compute a model's kernels, and keeps them for this machine.

    A model that was tuned before, by any process, is not tuned again.

    Args:
        request: request of the model.
        seconds: total time limit; a running compilation is not interrupted.

    Raises:
        ByocError: `seconds` is not as documented, the request has a calibration file, or the model
            cannot be compiled.
    """
    check_argument("tune", seconds, int | float, "a number of seconds, or None")
    if isinstance(seconds, bool) or not seconds > 0:
        raise ByocError(f"tune is {seconds!r}, accepted are seconds above 0")
    if request.calibration is not None:
        raise ByocError(
            "tune and calibration are both given; a calibration file already holds the choices"
        )
    ratio = tuned_before(request)
    if ratio is not None:
        return Tuning(ratio)
    search = Search(request, seconds, process_choices())
    try:
        found = search.run()
        keep_choices(request, found.choices, found.ratio)
        return Tuning(found.ratio, tuple(_kernels(found)), found.variants, found.reason)
    finally:
        search.close()


def _kernels(found: SearchResult) -> list[TunedKernel]:
    """Returns the problems whose way changed, largest gain first."""
    before, after, taken = found.before, found.after, found.before.taken
    kernels = [
        TunedKernel(problem, was, choice, before.of_problem(problem), after.of_problem(problem))
        for problem, choice in found.choices.items()
        if (was := taken.get(problem, choice)) != choice
    ]
    return sorted(kernels, key=lambda one: one.milliseconds_after - one.milliseconds_before)
