"""Judgement of one case in this process."""

from __future__ import annotations

import re
import tempfile
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import byoc_mlir
from byoc_mlir.errors import ByocError, CompilationError, ExecutionError
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.report import Report
from byoc_mlir_fuzz.case import Array, Case, Feeds, Outcome, Settings
from byoc_mlir_fuzz.excuses import (
    ORDERING,
    apart,
    has_nan,
    leaves_open,
    overflows_within,
    slack_of,
)
from byoc_mlir_fuzz.graphs import ops_in, part_of
from byoc_mlir_fuzz.mistakes import knows
from byoc_mlir_fuzz.node_by_node import NodeByNode, NotRunError
from byoc_mlir_fuzz.oracles import (
    KEYS,
    ORACLES,
    Answer,
    as_arrays,
    differences,
    finite_only,
)

Say = Callable[[str], None]
"""Callback that reports the next step, `compile`, `run` or an oracle's name, to explain a crash."""

_RANDOM = frozenset(("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")) | {
    "Bernoulli",
    "Multinomial",
    "Dropout",
}


def judge(
    case: Case, settings: Settings, say: Say, without: frozenset[str] = frozenset()
) -> Outcome:
    """Compiles and runs a case, and compares its outputs with the oracles'.

    Args:
        case: the case.
        settings: how to compile it.
        say: called before each step.
        without: oracles that are not used.
    """
    judge = _Judge(settings, say, without)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return judge.survives(case) if case.mutated else judge.agrees(case)


_ORDER = ("agrees", "undecided", "ill-conditioned", "wrong value")


def _worst(outcomes: Iterable[Outcome]) -> Outcome:
    return max(outcomes, key=lambda outcome: _ORDER.index(outcome.kind))


@dataclass(frozen=True)
class _Judge:
    settings: Settings
    say: Say
    without: frozenset[str]

    def survives(self, case: Case) -> Outcome:
        """Returns the outcome of a mutated case: `agrees` if it succeeds or ends in a typed
        error."""
        try:
            executable = self._compiled(case)
            feeds = small_inputs(executable)
            self.say("run")
            if feeds is not None:
                executable.run(feeds)
            return Outcome("agrees", placements=executable.report().counts())
        except BaseException as error:  # the point of it
            return _raised(error) if _is_defect(error) else Outcome("agrees", _first_line(error))

    def agrees(self, case: Case) -> Outcome:
        """Returns the outcome of a model: its outputs have to be equal in two runs, and to agree
        with an oracle.
        """
        model = onnx.ModelProto.FromString(case.model)
        answers: list[Answer] = []
        try:
            executable = self._made(case, model)
            for feeds in case.feeds:
                self.say("run")
                answers.append(_copied(executable.run(feeds)))
                again = as_arrays(executable.run(feeds))
                if _RANDOM.isdisjoint(ops_in(model.graph)) and not _same_bits(answers[-1], again):
                    return Outcome(
                        "nondeterminism", "two runs on the same inputs differ", _ops(model)
                    )
            report = executable.report()
        except NotRunError as error:
            return Outcome("invalid", _first_line(error))
        except ByocError as error:
            return _raised(error) if _is_defect(error) else self._refused(model, case.feeds, error)
        except BaseException as error:
            return _raised(error)
        worst = _worst(
            self._compared(model, feeds, answer, report)
            for feeds, answer in zip(case.feeds, answers, strict=True)
        )
        return replace(worst, placements=report.counts())

    def _made(self, case: Case, model: onnx.ModelProto) -> Executable | NodeByNode:
        if self.settings.interpreter:
            return NodeByNode(model, self.settings.threads)
        return self._compiled(case)

    def _compiled(self, case: Case) -> Executable:
        self.say("compile")
        with _source(case) as source:
            return byoc_mlir.compile(
                source,
                targets=self.settings.targets,
                threads=self.settings.threads,
                fallback="allow",
                cache=False,
            )

    def _compared(
        self, model: onnx.ModelProto, feeds: Feeds, got: Answer, report: Report
    ) -> Outcome:
        """Compares each output with the oracles' outputs of the model, or of the part that the
        output depends on.

        An oracle that fails on a model may know the nodes on which one output depends.
        """
        outcome = self._judged(model, feeds, got)
        if outcome.kind != "wrong value":
            return outcome
        parts = [part_of(model, output.name) for output in model.graph.output]
        return _worst(self._judged_part(part, feeds, got, report) for part in parts)

    def _judged_part(
        self, part: onnx.ModelProto, feeds: Feeds, got: Answer, report: Report
    ) -> Outcome:
        """Judges one output; feeds and outputs are the whole model's."""
        [output] = part.graph.output
        given = {value.name: feeds[value.name] for value in part.graph.input if value.name in feeds}
        its = {name: got[name] for name in got if name.removesuffix(KEYS) == output.name}
        outcome = self._judged(part, given, its)
        is_open = outcome.kind == "wrong value" and overflows_within(part, given, report)
        return Outcome("undecided") if is_open else outcome

    def _judged(self, model: onnx.ModelProto, feeds: Feeds, got: Answer) -> Outcome:
        ops = ops_in(model.graph)
        reasons: dict[str, list[str]] = {}
        excused: set[str] = set()
        answers: list[Answer] = []
        unjudged = {output.name for output in model.graph.output} | set(got)
        for name, oracle in ORACLES.items():
            known = {out for out in unjudged if knows(name, part_of(model, out.removesuffix(KEYS)))}
            if name in self.without or not known:
                continue
            self.say(name)
            try:
                want = oracle(model, feeds)
            except Exception:  # an oracle raises what it likes; then it gives no answer
                continue
            if not _RANDOM.isdisjoint(ops):
                got, want = _shapes(got), _shapes(want)
            if not ORDERING.isdisjoint(ops) and has_nan(model, feeds):
                return Outcome("undecided")
            compared = finite_only(name, got, want, ops)
            found = {
                output: reason
                for output, reason in differences(compared, want).items()
                if output in known
            }
            unjudged -= known - found.keys()  # what an oracle agrees with is right
            reasons = {output: those for output, those in reasons.items() if output in unjudged}
            if not unjudged:
                return Outcome("agrees")
            if not found:
                continue
            if leaves_open(name, model, feeds):
                return Outcome("undecided")
            excused |= found.keys() - differences(
                compared, want, slack_of(oracle, model, feeds, want)
            )
            answers.append(want)
            for output, reason in found.items():
                reasons.setdefault(output, []).append(f"{reason} by {name}")
        if not reasons:
            return Outcome("undecided")
        if len(answers) > 1:
            excused |= reasons.keys() - differences(got, answers[0], apart(*answers)).keys()
        message = "; ".join(reason for output in reasons.values() for reason in output)
        kind = "wrong value" if reasons.keys() - excused else "ill-conditioned"
        return Outcome(kind, message, _ops(model))

    def _refused(
        self, model: onnx.ModelProto, all_feeds: tuple[Feeds, ...], refusal: ByocError
    ) -> Outcome:
        asked = [name for name in ORACLES if knows(name, model)]
        if not asked or not self.without.isdisjoint(asked):
            return Outcome("invalid", _first_line(refusal))
        for name in asked:
            self.say(name)
            try:
                for feeds in all_feeds:
                    ORACLES[name](model, feeds)
            except Exception:  # as above
                return Outcome("invalid", _first_line(refusal))
        message = " ".join(str(refusal).split())[:300]
        stage = isinstance(refusal, CompilationError | ExecutionError)
        kind = "failed stage" if stage else "refused"
        return Outcome(kind, f"{type(refusal).__name__}: {message}", _normalised(message))


def _raised(error: BaseException) -> Outcome:
    if error.__cause__ is not None and isinstance(error, ByocError):  # the cause is the defect
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{Path(f.filename).name}:{f.name}" for f in frames if "byoc_mlir" in f.filename]
    place = ours[-1] if ours else "elsewhere"
    message = f"{type(error).__name__}: {_first_line(error)} (in {place})"
    signature = f"{type(error).__name__} in {place}: {_normalised(_first_line(error))[:80]}"
    return Outcome("untyped error", message, signature)


def _is_defect(error: BaseException) -> bool:
    """True if an error is a defect: not typed, of the class for defects, or of the base class,
    which reports wrong arguments, never a model.
    """
    named = {kind.__name__ for kind in type(error).__mro__}
    return not isinstance(error, ByocError) or type(error) is ByocError or "InternalError" in named


@contextmanager
def _source(case: Case) -> Generator[bytes | Path]:
    if case.form == "onnx":
        yield case.model
        return
    with tempfile.TemporaryDirectory(prefix="byoc-fuzz-") as folder:
        path = Path(folder) / "model.mlir"
        path.write_bytes(case.model)
        yield path


def small_inputs(executable: Executable) -> Feeds | None:
    """Returns ones for the inputs; `None` if they are large or strings."""
    feeds: dict[str, Array] = {}
    for info in executable.inputs:
        shape = [size if isinstance(size, int) else 2 for size in info.shape]
        if info.dtype.kind == "O" or np.prod(shape, dtype=np.float64) > 1 << 20:
            return None
        feeds[info.name] = np.ones(shape, info.dtype)
    return feeds


def _copied(outputs: Mapping[str, Any]) -> Answer:
    return {name: np.array(value) for name, value in as_arrays(outputs).items()}


def _same_bits(one: Answer, two: Answer) -> bool:
    return all(_bits(value) == _bits(two[name]) for name, value in one.items())


def _bits(array: Array) -> Any:
    """Returns the bytes of an array, or its strings."""
    return array.tolist() if array.dtype == object else array.tobytes()


def _shapes(answer: Answer) -> Answer:
    return {name: np.zeros_like(value) for name, value in answer.items()}


def _ops(model: onnx.ModelProto) -> str:
    return " ".join(sorted(ops_in(model.graph) - {"Constant"}))


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), "")[:200]


def _normalised(text: str) -> str:
    """Returns a message without the names and numbers of one model."""
    text = re.sub(r"\b[cinqsvxe]_?(\w_)?\d+\b", "_", text)
    return re.sub(r"-?\d+(\.\d+)?", "#", text)[:160]
