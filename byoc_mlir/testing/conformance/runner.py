"""Compilation and runs of cases, in ways in which mistakes show.

The cases of one op or pattern become one model: they are compiled once, and state that a backend
shares between regions is tested, too. The model runs with three sets of inputs, with the first
again, and in two threads at once. Inputs lie between guard elements, and must not be changed.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

import byoc_mlir
from byoc_mlir.compiler.source import ModelSource, main_function
from byoc_mlir.dialects.relay.constant import Array
from byoc_mlir.runtime import Executable
from byoc_mlir.testing.conformance.accuracy import accepted_error, error_of, expected
from byoc_mlir.testing.conformance.graph import Case

RETRIES = 3
"""Maximum number of wrong cases of a model that are repeated alone."""

GUARD = 64
"""Number of guard elements before and after each input, whose value shows in results."""

THREAD_RUNS = 4


@dataclass(frozen=True)
class Finding:
    """Result of running a case."""

    error: float = 0.0
    accepted: float = 0.0
    problem: str = ""
    """Description of the problem; empty if there is none."""
    is_right_alone: bool = False
    """True if the case is wrong only in a model with other regions."""


def run_cases(target: str, cases: Sequence[Case], least: float = 0.0) -> list[Finding]:
    """Compiles and runs cases in one model, and returns the finding of each.

    If the model cannot be compiled or run, its halves are tried, down to the faulty cases.

    Args:
        target: the backend's target.
        cases: models with inputs.
        least: errors up to it are accepted for all types.
    """
    if not cases:
        return []
    try:
        findings = _run_together(target, cases, least)
    except Exception as error:  # whatever a backend raises is a failure to report
        if len(cases) == 1:
            name = "" if isinstance(error, WrongError) else f"{type(error).__name__}: "
            return [Finding(problem=f"{name}{error}")]
        middle = len(cases) // 2
        halves = cases[:middle], cases[middle:]
        return [finding for half in halves for finding in run_cases(target, half, least)]
    if len(cases) > 1:
        wrong = [index for index, finding in enumerate(findings) if finding.problem]
        for index in wrong[:RETRIES]:
            (alone,) = run_cases(target, [cases[index]], least)
            if not alone.problem:
                said = f"right alone, wrong beside other regions: {findings[index].problem}"
                findings[index] = replace(findings[index], problem=said, is_right_alone=True)
    return findings


class WrongError(Exception):
    """Error of a model that was not placed or compiled as required."""


@contextmanager
def compiled(model: ModelSource, target: str) -> Generator[Executable]:
    """Compiles a model for a backend.

    Raises:
        WrongError: the backend failed, and something else took its part.
    """
    with byoc_mlir.compile(model, (target,), fallback="allow", cache=False) as executable:
        for warning in executable.report().warnings:
            if "failed" in warning:
                raise WrongError(warning)
        yield executable


@dataclass(frozen=True)
class _Feed:
    """Inputs of all cases, and their expected results."""

    inputs: Sequence[Sequence[Array]]
    wanted: Sequence[Sequence[Array]]

    @staticmethod
    def of(functions: Sequence[FuncOp], inputs: Sequence[Sequence[Array]]) -> _Feed:
        pairs = zip(functions, inputs, strict=True)
        return _Feed(inputs, [expected(function, arrays) for function, arrays in pairs])


def _run_together(target: str, cases: Sequence[Case], least: float) -> list[Finding]:
    functions = [main_function(case.module) for case in cases]
    limits = [max(least, accepted_error(function)) for function in functions]
    given = [case.inputs for case in cases]
    first, second, third = (
        _Feed.of(functions, inputs) for inputs in (given, _others(given, 1), _others(given, 2))
    )
    findings = [Finding(accepted=limit) for limit in limits]
    with compiled(joined(cases).module, target) as executable:
        runs = [
            _Run(executable, first, "with the first inputs"),
            _Run(executable, second, "with other inputs in a second run"),
            _Run(executable, third, "with other inputs in a third run"),
            _Run(executable, first, "with the first inputs again"),
        ]
        for run in runs:
            findings = run.judged(findings)
        for run in runs:
            findings = run.judged(findings, "in a result that a later run changed")
        if not any(finding.problem for finding in findings):
            findings = _run_in_threads(executable, (first, second), findings)
    return findings


class _Run:
    """Results of one run of all cases, and the expected ones."""

    def __init__(self, executable: Executable, feed: _Feed, which: str):
        self._which, self._wanted = which, feed.wanted
        self._got, self._changed = _outputs(executable, feed)

    def judged(self, findings: Sequence[Finding], which: str = "") -> list[Finding]:
        """Returns the findings, with the problems of this run added to findings without a problem.

        The returned arrays are compared now, not when the run returned them.
        """
        results = zip(findings, self._got, self._wanted, self._changed, strict=True)
        return [
            finding
            if finding.problem
            else _judge(finding, got, want, changed, which or self._which)
            for finding, got, want, changed in results
        ]


def _judge(
    finding: Finding, got: Sequence[Array], want: Sequence[Array], changed: bool, which: str
) -> Finding:
    errors = [error_of(one, other) for one, other in zip(got, want, strict=True)]
    error = max((finding.error, *errors))
    problem = ""
    if error > finding.accepted:
        problem = f"largest error {error:.1e} {which}, accepted is {finding.accepted:.1e}"
    elif changed:
        problem = f"an input was changed {which}"
    return Finding(error, finding.accepted, problem)


def _outputs(
    executable: Executable, feed: _Feed
) -> tuple[Sequence[Sequence[Array]], Sequence[bool]]:
    """Returns the outputs of each case, and `True` for each case one of whose inputs was changed by
    the run.
    """
    guarded = [[_guarded(array) for array in each] for each in feed.inputs]
    arrays = [array for each in guarded for array in each]
    outputs = executable.run({f"arg{index}": array for index, array in enumerate(arrays)})
    remaining = iter(outputs.values())
    got = [[next(remaining) for _ in wanted] for wanted in feed.wanted]
    pairs = zip(guarded, feed.inputs, strict=True)
    changed = [not all(map(_same, after, before)) for after, before in pairs]
    return got, changed


def _same(one: Array, other: Array) -> bool:
    return one.tobytes() == other.tobytes()


def _run_in_threads(
    executable: Executable, feeds: Sequence[_Feed], findings: Sequence[Finding]
) -> list[Finding]:
    """Runs the model in two threads at once, each with its own inputs, and returns the findings."""
    barrier = threading.Barrier(len(feeds))

    def work(feed: _Feed) -> list[Finding]:
        found = list(findings)
        try:
            for _ in range(THREAD_RUNS):
                barrier.wait(timeout=60)
                found = _Run(executable, feed, "in two threads at once").judged(found)
        except BaseException:
            barrier.abort()  # the other thread must not wait
            raise
        return found

    with ThreadPoolExecutor(len(feeds)) as pool:
        judged = list(pool.map(work, feeds))
    return [max(both, key=lambda one: bool(one.problem)) for both in zip(*judged, strict=True)]


def _others(inputs: Sequence[Sequence[Array]], seed: int) -> Sequence[Sequence[Array]]:
    """Returns inputs with the same elements at other positions, so that their ranges are equal.

    Elements are permuted along the first axis that is longer than one, since ranges depend on the
    last axis.
    """
    rng = np.random.default_rng(seed)

    def moved(array: Array) -> Array:
        axis = next((at for at, size in enumerate(array.shape) if size > 1), None)
        return array.copy() if axis is None else rng.permuted(array, axis=axis)

    return [[moved(array) for array in each] for each in inputs]


def _guarded(array: Array) -> Array:
    """Returns a copy between guard elements, whose values show if a kernel reads outside of the
    array.
    """
    around = np.zeros(array.size + 2 * GUARD, array.dtype)
    around[:] = _loud(array)
    inner = around[GUARD : GUARD + array.size].reshape(array.shape)
    inner[...] = array
    return inner


def _loud(array: Array) -> float | int | bool:
    if array.dtype.kind == "b":
        return True
    return int(np.iinfo(array.dtype).max) if array.dtype.kind in "iu" else float("nan")


def joined(cases: Sequence[Case]) -> Case:
    """Returns one model with the inputs, the ops, and the results of all cases."""
    block = Block()
    results: list[SSAValue] = []
    for function in (main_function(case.module) for case in cases):
        values: dict[SSAValue, SSAValue] = {
            argument: block.insert_arg(argument.type, len(block.args)) for argument in function.args
        }
        for op in function.body.block.ops:
            if isinstance(op, ReturnOp):
                results += (values[operand] for operand in op.operands)
            else:
                block.add_op(op.clone(values))
    block.add_op(ReturnOp(*results))
    types = [value.type for value in results]
    module = ModuleOp([FuncOp("main", (list(block.arg_types), types), Region(block))])
    inputs = tuple(array for case in cases for array in case.inputs)
    return Case(cases[0].subject, "all cases in one model", module, inputs)
