"""Executables that run in the interpreter tier until the model is compiled."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import byoc_mlir
from byoc_mlir.errors import ExecutionError, InvalidInputError
from byoc_mlir.frontend.inputs import model_inputs
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.execution import tier
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.execution.tier import LoadedTier
from byoc_mlir.tensors import Array

Named = Mapping[str, Array]


def model() -> ModelProto:
    """Returns the positive part of a sum of two inputs of the same sizes."""
    text = """
        <ir_version: 10, opset_import: ["": 21]>
        g (float[n, 4] x, float[n, 4] y) => (float[n, 4] z) { s = Add(x, y)  z = Relu(s) }
    """
    return parser.parse_model(text)


def inputs(count: int, seed: int = 0) -> dict[str, Array]:
    """Returns the model's inputs."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((count, 4), np.float32) for name in "xy"}


def wanted(given: Named) -> Array:
    """Returns the model's expected output."""
    return np.maximum(given["x"] + given["y"], 0)


def compiled() -> Executable:
    """Returns the model, compiled in this process."""
    return byoc_mlir.compile(model(), (), 1, cache=False)


class Compilation:
    """Mock of a compilation that ends when a test says so."""

    def __init__(self) -> None:
        self.started: list[Named] = []
        self.is_done = False
        self.is_stopped = False
        self.is_waited_for = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def start(self, inputs: Named) -> None:
        self.started.append(inputs)

    def has_started(self) -> bool:
        return bool(self.started)

    def is_over(self) -> bool:
        return self.is_done

    def wait(self) -> None:
        self.is_waited_for.set()
        self.may_end.wait(10)
        self.is_done = True

    def result(self) -> LoadedNode:
        return compiled().node

    def stop(self) -> None:
        self.is_stopped = True


class Answers:
    """Mock of the interpreter tier: records calls, and returns outputs that differ from the
    program's.
    """

    def __init__(self, error: Exception | None = None):
        self.count = 0
        self.error = error

    def __call__(self, given: Named) -> dict[str, Array]:
        self.count += 1
        if self.error is not None:
            raise self.error
        return {"z": wanted(given) + 1}


def executable(answers: Answers, compilation: Compilation) -> Executable:
    """Returns an executable of the model."""
    node = LoadedTier(model_inputs(model()), ["z"], answers, compilation)
    return Executable(node, None, compiled)


def test_it_answers_until_the_program_is_there() -> None:
    answers, compilation = Answers(), Compilation()
    with executable(answers, compilation) as tested:
        for count in (3, 1, 0):
            given = inputs(count)
            assert np.array_equal(tested.run(given)["z"], wanted(given) + 1)
        assert [one["x"].shape for one in compilation.started] == [(3, 4), (1, 4), (0, 4)]
        compilation.is_done = True
        for count in (3, 5, 0):
            given = inputs(count)
            assert np.array_equal(tested.run(given)["z"], wanted(given))
        assert answers.count == 3
        assert len(tested.report().variants) == 1


def test_outputs_of_the_caller_are_written_by_both() -> None:
    compilation = Compilation()
    with executable(Answers(), compilation) as tested:
        given, out = inputs(2), np.zeros((2, 4), np.float32)
        assert tested.run(given, {"z": out})["z"] is out
        assert np.array_equal(out, wanted(given) + 1)
        compilation.is_done = True
        assert tested.run(given, {"z": out})["z"] is out
        assert np.array_equal(out, wanted(given))


@pytest.mark.parametrize("asked", ["report", "wait", "program"])
def test_who_asks_for_more_than_outputs_waits(asked: str) -> None:
    asking: Mapping[str, Callable[[Executable], object]] = {
        "report": lambda one: one.report(),
        "wait": lambda one: one.wait(),
        "program": lambda one: one.program,
    }
    compilation = Compilation()
    with executable(Answers(), compilation) as tested:
        tested.run(inputs(3))
        asking[asked](tested)
        assert compilation.is_done
        assert np.array_equal(tested.run(inputs(2))["z"], wanted(inputs(2)))
        assert "all sizes" in str(tested.report())


def test_before_a_run_there_is_nothing_to_wait_for_or_to_report() -> None:
    answers, compilation = Answers(), Compilation()
    with executable(answers, compilation) as tested:
        tested.wait()
        with pytest.raises(ExecutionError, match="call run"):
            tested.report()
        assert np.array_equal(tested.run(inputs(2))["z"], wanted(inputs(2)) + 1)
        assert answers.count == 1
        assert not compilation.is_done


def test_shapes_are_warmed_up_in_the_program() -> None:
    answers = Answers()
    with executable(answers, Compilation()) as tested:
        tested.warmup({"x": (2, 4), "y": (2, 4)})
        assert np.array_equal(tested.run(inputs(2))["z"], wanted(inputs(2)))
        assert not answers.count


def test_where_it_cannot_answer_the_program_does() -> None:
    answers, compilation = Answers(ValueError("no such op")), Compilation()
    with executable(answers, compilation) as tested:
        assert np.array_equal(tested.run(inputs(2))["z"], wanted(inputs(2)))
        assert np.array_equal(tested.run(inputs(3))["z"], wanted(inputs(3)))
    assert answers.count == 1
    assert not compilation.started  # it may have been the inputs


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"x": np.zeros((2, 4), np.float32), "y": np.zeros((3, 4), np.float32)}, "'n'|n = "),
        ({"x": np.zeros((2, 3), np.float32), "y": np.zeros((2, 3), np.float32)}, r"\[2, 3\]"),
        ({"x": np.zeros((2, 4)), "y": np.zeros((2, 4))}, "float64"),
        ({"x": np.zeros((2, 4), np.float32)}, "missing"),
    ],
)
def test_wrong_inputs_are_refused(given: dict[str, Any], found: str) -> None:
    answers = Answers()
    with executable(answers, Compilation()) as tested:
        with pytest.raises(InvalidInputError, match=found):
            tested.run(given)
        assert not answers.count


def test_a_slow_answer_is_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier, "LONGEST_ANSWER", -1.0)
    answers, compilation = Answers(), Compilation()
    with executable(answers, compilation) as tested:
        assert np.array_equal(tested.run(inputs(2))["z"], wanted(inputs(2)) + 1)
        assert np.array_equal(tested.run(inputs(2))["z"], wanted(inputs(2)))
    assert answers.count == 1


def test_a_closed_one_says_so() -> None:
    compilation = Compilation()
    tested = executable(Answers(), compilation)
    tested.run(inputs(2))
    tested.close()
    assert compilation.is_stopped
    for ask in (lambda: tested.run(inputs(2)), tested.report, lambda: pickle.dumps(tested)):
        with pytest.raises(ExecutionError, match="closed"):
            ask()


def test_a_closed_one_describes_its_program_as_a_leaf_does() -> None:
    tested = executable(Answers(), Compilation())
    tested.run(inputs(2))
    tested.wait()
    tested.run(inputs(2))
    tested.close()
    assert (tested.threads, len(tested.report())) == (1, 2)
    with pytest.raises(ExecutionError, match="closed"):
        tested.run(inputs(2))


def test_others_are_answered_while_one_waits() -> None:
    compilation = Compilation()
    compilation.may_end.clear()
    with executable(Answers(), compilation) as tested:
        tested.run(inputs(3))
        waiting = threading.Thread(target=tested.wait)
        waiting.start()
        assert compilation.is_waited_for.wait(10)
        assert np.array_equal(tested.run(inputs(2))["z"], wanted(inputs(2)) + 1)
        compilation.may_end.set()
        waiting.join()
        assert np.array_equal(tested.run(inputs(2))["z"], wanted(inputs(2)))


def test_a_pickle_compiles_again() -> None:
    with executable(Answers(), Compilation()) as tested:
        tested.run(inputs(2))
        with pickle.loads(pickle.dumps(tested)) as again:
            assert np.array_equal(again.run(inputs(3))["z"], wanted(inputs(3)))


def test_steps_are_those_of_the_program() -> None:
    with executable(Answers(), Compilation()) as tested:
        given = inputs(2)
        step = tested.node.steps(given, ["y"])
        for seed in (1, 2):
            y = inputs(2, seed)["y"]
            (found,) = step([y])
            assert np.array_equal(found, wanted({**given, "y": y}))


def test_threads_may_call_while_the_program_comes() -> None:
    compilation, problems = Compilation(), list[str]()

    def call(seed: int) -> None:
        for count in range(1, 40):
            given = inputs(count, seed)
            found = tested.run(given)["z"]
            if not np.array_equal(found, wanted(given)) and not np.array_equal(
                found, wanted(given) + 1
            ):
                problems.append(f"{count} rows")
            compilation.is_done = compilation.is_done or count == 10

    with executable(Answers(), compilation) as tested:
        threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems
        assert np.array_equal(tested.run(inputs(2))["z"], wanted(inputs(2)))
