"""Variants of kernels: right, searched for within the time, kept, and never slower."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from measured import write_measured
from tuning_models import small_network

import byoc_mlir
from byoc_mlir.compiler import calibration as compiler_calibration
from byoc_mlir.compiler.execution.model import compile_model
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.tuning.search import Candidate, Search, TimedStep
from byoc_mlir.compiler.tuning.tune import tune_model
from byoc_mlir.errors import ByocError
from byoc_mlir.kernels.tuned import Question, Trial, trying
from byoc_mlir.lowering.linalg_to_loops import schedule
from byoc_mlir.runtime.program import ObjectCode

MODEL = small_network().SerializeToString()
X = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)


@pytest.fixture(autouse=True)
def own_choices() -> Iterator[None]:
    """Clears the process's calibration after a test, so that choices do not leak."""
    yield
    compiler_calibration.process_calibration.cache_clear()


def _request(threads: int = 1) -> Request:
    return Request(MODEL, targets=(), threads=threads, fallback="allow")


def _questions(threads: int = 1) -> Mapping[str, Question]:
    trial = Trial({})
    with trying(trial):
        compile_model(_request(threads)).close()
    return trial.questions


def _wanted() -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": X})[0])


def test_every_way_gives_the_same_numbers(tmp_path: Path) -> None:
    threads, wanted = 2, _wanted()
    questions = _questions(threads)
    asked = {one for question in questions.values() for one in question.candidates}
    assert {"loops", "implicit_gemm", "depthwise", "blocked", "blocked_across", "rows=8"} <= asked
    for number in range(max(len(one.candidates) for one in questions.values())):
        choices = {
            problem: one.candidates[number % len(one.candidates)]
            for problem, one in questions.items()
        }
        path = tmp_path / f"{number}.json"
        write_measured(path, tuned=choices)
        with byoc_mlir.compile(
            MODEL, (), threads, fallback="allow", calibration=path, cache=False
        ) as executable:
            found = executable.run({"x": X})["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_a_file_with_ways_that_there_are_not_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    choices = dict.fromkeys(_questions(), "by_magic")
    write_measured(path, tuned=choices)
    with byoc_mlir.compile(MODEL, (), 1, calibration=path, fallback="allow") as executable:
        np.testing.assert_allclose(executable.run({"x": X})["y"], _wanted(), rtol=1e-4, atol=1e-4)


def _believing(ratio: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mocks measurements: each variant takes less time than the one before, and the final
    comparison returns `ratio`.
    """
    turns = itertools.count(1)
    monkeypatch.setattr(schedule, "PRODUCT_SCHEDULES", ("columns=256",))  # fewer to compile

    def measure(search: Search, variants: list[Candidate]) -> None:
        for variant in variants:
            variant.runs.setdefault(0, {TimedStep((), "", 0): 1 / next(turns)})

    def first(search: Search, start: Candidate, others: list[Candidate]) -> Candidate:
        return others[0]

    monkeypatch.setattr(Search, "_measure", measure)
    monkeypatch.setattr(Search, "_first_in_pairs", first)
    monkeypatch.setattr(Search, "_ratio", lambda search, before, after: ratio)


def test_what_is_faster_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    _believing(0.5, monkeypatch)
    tuning = tune_model(_request(), 30)
    assert (tuning.ratio, tuning.reason) == (0.5, "")
    assert tuning.variants > 3
    choices = compiler_calibration.process_choices()
    assert choices.keys() >= {one.problem for one in tuning.kernels}
    with compile_model(_request()) as executable:
        np.testing.assert_allclose(executable.run({"x": X})["y"], _wanted(), rtol=1e-4, atol=1e-4)


def test_what_is_slower_in_the_end_is_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    _believing(1.01, monkeypatch)
    tuning = tune_model(_request(), 30)
    assert tuning.ratio == 1
    assert "1.01 of the time" in tuning.reason
    assert not compiler_calibration.process_choices()


def test_a_time_too_short_leaves_everything_and_says_so() -> None:
    with (
        pytest.warns(UserWarning, match="left the model as it was.*the time is over"),
        byoc_mlir.compile(MODEL, (), 1, fallback="allow", tune=1e-6) as executable,
    ):
        np.testing.assert_allclose(executable.run({"x": X})["y"], _wanted(), rtol=1e-4, atol=1e-4)
    assert not compiler_calibration.process_choices()


def test_tuning_measures_primitives_and_the_model_is_compiled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BYOC_CACHE", "off")
    compiler_calibration.process_calibration.cache_clear()
    request = Request(MODEL, targets=("dnnl",), threads=1, fallback="allow")
    store, key = compiler_calibration.process_calibration(), compiler_calibration.model_key(request)
    compile_model(request).close()
    assert not store.group("dnnl")
    tune_model(request, 1e-6)
    assert store.group("dnnl")
    assert compiler_calibration.model_key(request) != key


@pytest.mark.parametrize("seconds", [0, -1, True, "60", float("nan")])
def test_a_time_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(ByocError, match="tune is"):
        byoc_mlir.compile(MODEL, (), 1, fallback="allow", tune=seconds)


def test_calibration_and_tuning_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text('{"version": 2, "measurements": {}}')
    with pytest.raises(ByocError, match="both given"):
        byoc_mlir.compile(MODEL, (), 1, fallback="allow", tune=1, calibration=path)


_REQUEST = """
import sys
from byoc_mlir.compiler import calibration
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.tuning.tune import tune_model
model = open(sys.argv[1], "rb").read()
request, other = (
    Request(model, targets=(), threads=threads, fallback="allow") for threads in (1, 2)
)
"""
_FIRST = """
calibration.keep_choices(request, {"a problem": "a way"}, 0.75)
calibration.keep_choices(other, {"another": "one"}, 0.5)
print(tune_model(request, 1).ratio)
"""
_SECOND = """
print(calibration.process_choices(), calibration.tuned_before(request))
"""


def test_another_process_takes_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOC_CACHE", "on")
    monkeypatch.setenv("BYOC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "model.onnx").write_bytes(MODEL)
    first, second = (
        subprocess.run(
            [sys.executable, "-c", _REQUEST + code, str(tmp_path / "model.onnx")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for code in (_FIRST, _SECOND)
    )
    assert first == "0.75\n"
    assert second == "{'a problem': 'a way', 'another': 'one'} 0.75\n"


def test_the_cache_tells_tuned_programs_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOC_CACHE", "on")
    monkeypatch.setenv("BYOC_CACHE_DIR", str(tmp_path))
    questions = _questions()
    problem = next(name for name, one in questions.items() if "blocked" in one.candidates)

    def code() -> bytes:
        with byoc_mlir.compile(MODEL, (), 1, fallback="allow") as executable:
            object_code = executable.program.code
            assert isinstance(object_code, ObjectCode)
            return b"".join(object_code.files)

    untuned = code()
    assert code() == untuned
    compiler_calibration.keep_choices(_request(), {problem: "blocked"}, 0.9)
    assert code() != untuned
