"""Time limit of a compilation, which the loops of each stage check."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import Message
from helpers.models import model_of
from onnx import helper

import byoc_mlir
from byoc_mlir import Limits, limits
from byoc_mlir.compiler.build import Stages
from byoc_mlir.compiler.execution import model as compilation
from byoc_mlir.compiler.source import Source, read_source
from byoc_mlir.errors import LimitExceededError
from byoc_mlir.frontend.files import check
from byoc_mlir.frontend.files.check import check_model
from byoc_mlir.limits import limited

LOOPS = {
    (): (
        *("(import)", "simplify", "fold-constants", "fold-batch-norm", "convert-relay-to-linalg"),
        *("fuse-elementwise", "bufferize", "outline-kernels", "plan-buffers", "choose-schedules"),
        *("convert-linalg-to-loops", "add-entry-points", "expand-math", "convert-to-llvm"),
    ),
    ("dnnl",): ("(import)", "partition-for", "(generate)"),
}
"""Stages (in parentheses) and passes that visit all nodes of a model, by target."""


def _branches(count: int) -> onnx.ModelProto:
    """Returns `count` matmuls of different sizes, so that nothing is fused, each with its
    epilogue."""
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray] = {}
    for number in range(count):
        weights[f"w{number}"] = np.ones((8, number + 1), np.float32)
        nodes.append(helper.make_node("MatMul", ["x", f"w{number}"], [f"p{number}"]))
        nodes.append(helper.make_node("Exp", [f"p{number}"], [f"e{number}"]))
        nodes.append(helper.make_node("ReduceMax", [f"e{number}"], [f"r{number}"], keepdims=0))
    nodes.append(helper.make_node("Sum", [f"r{number}" for number in range(count)], ["y"]))
    return model_of(nodes, {"x": [4, 8]}, weights)


class _Counted(limits._Budget):  # pyright: ignore[reportPrivateUsage]
    """Budget that counts how often its end is checked."""

    looks = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "deadline":
            _Counted.looks += 1
        return super().__getattribute__(name)


def _looks(count: int, targets: Sequence[str]) -> Counter[str]:
    """Returns the number of checks of the time, by pass and by stage."""
    seen, before = Counter[str](), 0
    add_pass = Stages.add_pass

    def add(self: Stages, name: str, seconds: float) -> None:
        nonlocal before
        seen[name] += _Counted.looks - before
        before = _Counted.looks
        add_pass(self, name, seconds)

    _Counted.looks = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "_Budget", _Counted)
        patch.setattr(Stages, "add_pass", add)
        byoc_mlir.compile(_branches(count), targets=targets, threads=1, cache=False)
    return seen


@pytest.mark.parametrize("targets", LOOPS)
def test_every_stage_looks_at_the_time_for_each_node(targets: tuple[str, ...]) -> None:
    few, many = (_looks(count, targets) for count in (5, 25))
    assert [name for name in LOOPS[targets] if many[name] - few[name] < 20] == []


def test_reading_looks_at_the_time_for_each_node() -> None:
    found = _branches(20)
    with limited(Limits(seconds=0)), pytest.raises(LimitExceededError, match="takes too long"):
        check_model(found)


def test_texts_of_a_subgraph_are_read_within_the_time() -> None:
    """Checks a hostile case: branches in branches, which double on each level."""
    found = _branches(1)
    for _ in range(9):
        inner = helper.make_graph(list(found.graph.node), "g", [], list(found.graph.output))
        chosen = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
        del found.graph.node[:]
        found.graph.node.append(chosen)
    seen = list[Message]()

    def fields(message: Message) -> Iterable[Any]:
        seen.append(message)
        return message.ListFields()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "_fields", fields)
        with limited(Limits(seconds=0)), pytest.raises(LimitExceededError, match="too long"):
            check_model(found)
        assert not seen
        with limited(Limits(nodes=1000)), pytest.raises(LimitExceededError, match="nodes of the"):
            check_model(found)
        assert not seen


def test_a_compilation_that_would_never_end_ends() -> None:
    assert 0 < Limits().seconds < float("inf")
    start = time.perf_counter()
    with pytest.raises(LimitExceededError) as caught:
        byoc_mlir.compile(_branches(300), targets=(), cache=False, limits=Limits(seconds=0.5))
    assert caught.value.limit == "seconds"
    assert time.perf_counter() - start < 60


def test_reading_takes_of_the_time_of_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    late = 0.0

    class Clock:
        @staticmethod
        def perf_counter() -> float:
            return time.perf_counter() + late

    def read(*arguments: Any, **options: Any) -> Source:
        nonlocal late
        found = read_source(*arguments, **options)
        late = 1e6
        return found

    monkeypatch.setattr(limits, "time", Clock)
    monkeypatch.setattr(compilation, "read_source", read)
    with pytest.raises(LimitExceededError, match="takes too long"):
        byoc_mlir.compile(_branches(1), targets=(), cache=False, limits=Limits(seconds=1e5))
