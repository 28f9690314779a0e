"""Search for the fastest choices: compiles whole models with other choices, and times their steps.

So each kernel is measured in its place, with the caches as the preceding step left them. The number
of compilations is the largest number of ways to compute one kernel, not the product over all
kernels.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.calibration import measuring
from byoc_mlir.compiler.execution.model import compile_model
from byoc_mlir.compiler.partition.region_times import random_values
from byoc_mlir.compiler.request import Request
from byoc_mlir.kernels.tuned import Question, Trial, trying
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.profile import ProfileRow

Choices: TypeAlias = Mapping[str, str]
"""Name of a way, by problem."""

_ROUNDS, _ROUND_SECONDS = 12, 0.6
"""Minimum number of rounds, and their minimum seconds for each variant."""

_TURN_SECONDS = 0.005
"""Approximate seconds of a variant in a round. The median of its runs counts, so that the weights
are still in the caches.
"""

_CLEARLY = 0.97
"""Maximum time of a problem with another way for the way to be chosen, as a fraction of the time
without it."""

_PAIRS, _PAIR_SECONDS = 21, 0.02
"""Number of pairs in the last comparison, and minimum seconds of one side."""

_WORTH = 0.98
"""Maximum time of a tuned model, as a fraction of the untuned model's."""


@dataclass(frozen=True)
class TimedStep:
    """Key of a step in a run; other fields of a profile's row may differ from run to run."""

    nodes: tuple[str, ...]
    kernel: str
    number: int
    """Index among steps with the same nodes and kernel."""


@dataclass
class Candidate:
    """Model compiled with certain choices, and the times of its steps."""

    choices: Choices
    executable: Executable
    questions: Mapping[str, Question]
    runs: dict[int, Mapping[TimedStep, float]] = field(
        default_factory=dict[int, Mapping[TimedStep, float]]
    )
    """Milliseconds of each step, by the number of the round."""

    def note(self, number: int, rows: Iterable[ProfileRow]) -> None:
        """Records the times of a run in a round."""
        seen = Counter[tuple[tuple[str, ...], str]]()
        run: dict[TimedStep, float] = {}
        for row in rows:
            name = row.nodes, row.implementation
            run[TimedStep(*name, seen[name])] = row.milliseconds
            seen[name] += 1
        self.runs[number] = run

    def of_problem(self, problem: str) -> float:
        """Returns the milliseconds of a problem's steps, as the median of all rounds."""
        return statistics.median(self._milliseconds(problem).values())

    def over(self, other: Candidate, problem: str | None = None) -> float:
        """Returns the time of this candidate divided by another candidate's, in total or for a
        problem.

        The result is the median over common rounds, because load in a round affects both. It is
        infinite if this candidate does not have the problem.
        """
        if problem is not None and problem not in self.questions:
            return math.inf
        ours, others = self._milliseconds(problem), other._milliseconds(problem)
        ratios = [took / others[one] for one, took in ours.items() if others.get(one)]
        return statistics.median(ratios) if ratios else math.inf

    def _milliseconds(self, problem: str | None) -> Mapping[int, float]:
        """Returns the milliseconds of a problem's steps, or of all steps, by round."""
        steps = self._steps(problem)
        return {number: sum(run[step] for step in steps) for number, run in self.runs.items()}

    def _steps(self, problem: str | None) -> Collection[TimedStep]:
        """Returns the steps that a problem affects.

        Algorithms also affect neighbouring steps. A schedule affects only the steps of its own
        problem.
        """
        steps = next(iter(self.runs.values())).keys()
        if problem is None:
            return steps
        question, others = self.questions[problem], set[str]()
        if question.is_of_schedule:
            others = {name for one in self.questions.values() for name in one.kernels}
        return [
            step
            for step in steps
            if step.kernel in question.kernels
            or (step.kernel not in others and question.nodes.intersection(step.nodes))
        ]

    @property
    def taken(self) -> Choices:
        """Returns the choice that was made for every problem."""
        return {problem: one.taken for problem, one in self.questions.items() if one.taken}


@dataclass(frozen=True)
class SearchResult:
    """Result of a search."""

    before: Candidate
    after: Candidate
    variants: int
    """Number of compiled variants."""
    ratio: float
    """Time with the choices divided by the time without them; 1 if there are no choices."""
    reason: str = ""
    """Reason why there are no choices."""

    @property
    def choices(self) -> Choices:
        """Returns the choices; empty if nothing better was found."""
        return {} if self.reason else self.after.taken


class Search:
    """Search for the fastest choices within a time limit.

    Args:
        request: request of the model.
        seconds: time limit in CPU time of this thread, so that load does not reduce the trials. A
            running compilation is not interrupted.
        known: choices already made.
    """

    def __init__(self, request: Request, seconds: float, known: Choices):
        self._request = replace(request, profile=True, dump_ir=None, fallback="allow")
        self._inputs: Mapping[str, Any] = {}
        self._end = time.thread_time() + seconds
        self._known = known
        self._built: dict[tuple[tuple[str, str], ...], Candidate] = {}
        self._longest = 0.0
        self._rounds = 0

    def close(self) -> None:
        """Frees the compiled variants."""
        for variant in {id(one): one for one in self._built.values()}.values():
            variant.executable.close()

    def run(self) -> SearchResult:
        """Chooses algorithms first, since they affect their neighbours, then schedules.

        Raises:
            ByocError: the model cannot be compiled or profiled.
        """
        before = self._build(self._known)
        if not before.executable.node.is_complete:
            reason = "it has symbolic dimensions (give sizes), or runs in several pieces"
            return SearchResult(before, before, 1, 1.0, reason)
        generator = np.random.default_rng(0)
        inputs = before.executable.inputs
        self._inputs = {info.name: random_values(info, generator) for info in inputs}
        algorithms = self._improved(before, lambda question: not question.is_of_schedule)
        schedules = self._improved(algorithms, lambda question: question.is_of_schedule)
        count = len({id(one) for one in self._built.values()})
        if count == 1:
            reason = (
                f"compiling the model once takes {self._longest:.1f} s, and the time is over"
                if before.questions
                else "the model has no kernel that can be computed in another way"
            )
            return SearchResult(before, before, count, 1.0, reason)
        others = [one for one in (algorithms, schedules) if one is not before]
        if not others:
            return SearchResult(before, before, count, 1.0, "no other way was faster")
        ratios = [self._ratio(before, one) for one in others]
        ratio, best = min(zip(ratios, others, strict=True), key=lambda pair: pair[0])
        if ratio > _WORTH:
            reason = f"together they took {ratio:.2f} of the time before"
            return SearchResult(before, before, count, 1.0, reason)
        return SearchResult(before, best, count, ratio)

    def _improved(self, start: Candidate, asked: Callable[[Question], bool]) -> Candidate:
        """Returns the fastest of several candidates.

        The candidates are `start`, variants of it with one other way for all problems, and a
        variant with the fastest way for each problem.
        """
        questions = {name: one for name, one in start.questions.items() if asked(one)}
        variants = [start]
        for number in range(max((len(one.candidates) for one in questions.values()), default=0)):
            others = {
                problem: one.candidates[number]
                for problem, one in questions.items()
                if number < len(one.candidates)
            }
            if not self._has_time(compilations=2):
                break
            variants.append(self._build({**start.taken, **others}))
        self._measure(variants)
        fastest = {name: _fastest(name, start, variants) for name in questions}
        if self._has_time(compilations=1):
            variants.append(self._build({**start.taken, **fastest}))
            self._measure(variants)
        best = min(variants, key=lambda variant: variant.over(start))
        return self._first_in_pairs(start, [best, variants[-1]])

    def _first_in_pairs(self, start: Candidate, others: Sequence[Candidate]) -> Candidate:
        """Returns the fastest candidate, measured in pairs of runs without the timing of steps."""
        ratios = [(self._ratio(start, one), one) for one in others if one is not start]
        ratio, best = min(ratios, key=lambda pair: pair[0], default=(1.0, start))
        return best if ratio <= _WORTH else start

    def _has_time(self, compilations: int) -> bool:
        """True if `compilations` further compilations fit in the remaining time, besides
        measurements.
        """
        left = self._end - time.thread_time()
        return left > compilations * self._longest

    def _build(self, choices: Choices) -> Candidate:
        key = tuple(sorted(choices.items()))
        if key not in self._built:
            start, trial = time.thread_time(), Trial(choices)
            with trying(trial), measuring():
                executable = compile_model(self._request)
            found = Candidate(choices, executable, trial.questions)
            self._longest = max(self._longest, time.thread_time() - start)
            self._built[key] = found
            taken = tuple(sorted(found.taken.items()))
            self._built.setdefault(taken, found)  # the same by all names
        return self._built[key]

    def _measure(self, variants: Sequence[Candidate]) -> None:
        """Times the steps of variants in interleaved rounds, so that load affects all."""
        different = list({id(variant): variant for variant in variants}.values())
        begin, first = time.thread_time(), self._rounds
        least = _ROUND_SECONDS * len(different)
        runs = self._runs_of(variants[0], _TURN_SECONDS)
        while self._rounds - first < _ROUNDS or time.thread_time() - begin < least:
            self._rounds += 1
            for variant in different:
                variant.note(self._rounds, variant.executable.profile(self._inputs, runs=runs))

    def _runs_of(self, variant: Candidate, seconds: float) -> int:
        """Returns the number of runs that take about `seconds`."""
        one = _seconds(variant.executable.run, self._inputs, 1)
        return max(1, round(seconds / max(one, 1e-6)))

    def _ratio(self, before: Candidate, after: Candidate) -> float:
        """Returns the time of one candidate divided by the other's, as the median of pairs of
        runs.
        """
        runs = self._runs_of(before, _PAIR_SECONDS)
        pairs = [
            (
                _seconds(after.executable.run, self._inputs, runs),
                _seconds(before.executable.run, self._inputs, runs),
            )
            for _ in range(_PAIRS)
        ]
        return statistics.median(one / other for one, other in pairs)


def _fastest(problem: str, start: Candidate, variants: Sequence[Candidate]) -> str:
    """Returns the fastest way for a problem if it is clearly faster than the way of `start`, else
    the way of `start`.
    """
    best = min(variants, key=lambda variant: variant.over(start, problem))
    is_clear = best.over(start, problem) < _CLEARLY
    return (best if is_clear else start).questions[problem].taken


def _seconds(
    run: Callable[[Mapping[str, Any]], Any], inputs: Mapping[str, Any], runs: int
) -> float:
    """Measures runs in CPU time of this process, so that load of other processes does not count."""
    start = time.process_time()
    for _ in range(runs):
        run(inputs)
    return time.process_time() - start
