"""Models with sequences and optionals as inputs or outputs: lists of arrays, and `None`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper
from onnx.reference import ReferenceEvaluator

import byoc_mlir
from byoc_mlir.errors import ExecutionError, ExportError, InvalidInputError
from byoc_mlir.runtime.execution import recent
from byoc_mlir.runtime.plan import Leaf, Structured

TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
SEQUENCE = helper.make_sequence_type_proto(TENSOR)
OPTIONAL = helper.make_optional_type_proto(TENSOR)
FIXED = helper.make_tensor_type_proto(TensorProto.FLOAT, (6, 2))
node = helper.make_node


def _compile(
    nodes: Sequence[NodeProto], inputs: dict[str, TypeProto], outputs: dict[str, TypeProto]
) -> tuple[ModelProto, byoc_mlir.Executable]:
    takes, gives = (
        [helper.make_value_info(name, type_) for name, type_ in named.items()]
        for named in (inputs, outputs)
    )
    graph = helper.make_graph(list(nodes), "g", takes, gives)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    assert isinstance(executable.plan, Structured)
    return model, executable


def _check(model: ModelProto, executable: byoc_mlir.Executable, feeds: dict[str, Any]) -> None:
    wanted: Any = ReferenceEvaluator(model).run(None, feeds)
    found: dict[str, Any] = executable.run(feeds)
    assert list(found) == [output.name for output in model.graph.output]
    for value, reference in zip(found.values(), wanted, strict=True):
        assert type(value) is type(reference)
        if not isinstance(value, list):
            value, reference = [value], [reference]
        for one, other in zip(value, reference, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-6)


def _numbers(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_sequences_of_several_lengths_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "CACHED_SHAPES", 2)
    nodes = [
        node("ConcatFromSequence", ["s"], ["joined"], axis=0),
        node("Exp", ["joined"], ["e"]),
        node("SequenceInsert", ["s", "e"], ["t"]),
    ]
    model, executable = _compile(nodes, {"s": SEQUENCE}, {"t": SEQUENCE, "e": TENSOR})
    assert str(executable.inputs[0]) == "s: sequence of float32"
    with pytest.raises(ExecutionError, match="nothing is compiled yet"):
        executable.report()
    for rows in ((2, 3), (1,), (3, 3), (4, 1, 2), (2, 3)):
        _check(model, executable, {"s": [_numbers(count, 4) for count in rows]})
    assert executable.report().rows
    executable.close()
    with pytest.raises(ExecutionError, match="closed"):
        executable.run([[_numbers(2, 4)]])


def test_one_program_serves_all_sizes() -> None:
    rows = helper.make_tensor_type_proto(TensorProto.FLOAT, ("n", 4))
    sequence, optional = (
        helper.make_sequence_type_proto(rows),
        helper.make_optional_type_proto(rows),
    )
    nodes = [
        node("ConcatFromSequence", ["s"], ["joined"], axis=0),
        node("OptionalGetElement", ["o"], ["there"]),
        node("Add", ["there", "x"], ["sum"]),
        node("Concat", ["joined", "sum"], ["y"], axis=0),
    ]
    model, executable = _compile(nodes, {"s": sequence, "o": optional, "x": rows}, {"y": TENSOR})
    for count in (2, 3, 5, 7):
        rows_of_one = _numbers(count, 4)
        _check(model, executable, {"s": [rows_of_one] * 2, "o": rows_of_one, "x": rows_of_one})
    assert isinstance(executable.plan, Structured)
    [compiled] = executable.plan.nodes
    assert isinstance(compiled, Leaf)
    assert len(compiled.programs) == 1


def test_an_optional_that_is_there_or_not() -> None:
    def branch(name: str, *nodes: NodeProto) -> Any:
        output = helper.make_value_info(name, TENSOR)
        return helper.make_graph(list(nodes), name, [], [output])

    there = branch("a", node("OptionalGetElement", ["o"], ["v"]), node("Add", ["v", "x"], ["a"]))
    missing = branch("b", node("Neg", ["x"], ["b"]))
    nodes = [
        node("OptionalHasElement", ["o"], ["has"]),
        node("If", ["has"], ["y"], then_branch=there, else_branch=missing),
    ]
    model, executable = _compile(nodes, {"o": OPTIONAL, "x": FIXED}, {"y": TENSOR, "o": OPTIONAL})
    for value in (_numbers(6, 2), None, _numbers(2)):
        _check(model, executable, {"o": value, "x": _numbers(6, 2)})


def test_a_sequence_that_a_model_of_tensors_gives() -> None:
    nodes = [node("SplitToSequence", ["x"], ["s"], axis=0), node("Identity", ["s"], ["t"])]
    model, executable = _compile(nodes, {"x": FIXED}, {"t": SEQUENCE})
    assert executable.program  # compiled at once
    _check(model, executable, {"x": _numbers(6, 2)})


def test_an_empty_sequence() -> None:
    nodes = [
        node("SequenceLength", ["s"], ["n"]),
        node("SequenceInsert", ["s", "x"], ["t"]),
    ]
    count = helper.make_tensor_type_proto(TensorProto.INT64, ())
    model, executable = _compile(
        nodes, {"s": SEQUENCE, "x": FIXED}, {"n": count, "s": SEQUENCE, "t": SEQUENCE}
    )
    for length in (0, 2):
        _check(model, executable, {"s": [_numbers(3)] * length, "x": _numbers(6, 2)})


def test_what_does_not_fit_is_refused() -> None:
    _, executable = _compile(
        [node("SequenceLength", ["s"], ["n"])],
        {"s": SEQUENCE},
        {"n": helper.make_tensor_type_proto(TensorProto.INT64, ())},
    )
    with pytest.raises(InvalidInputError, match="'s' must be a list of arrays, found NoneType"):
        executable.run([None])
    with pytest.raises(InvalidInputError, match=r"'s\[1\]' must be of float32, found int64"):
        executable.run({"s": [_numbers(2), np.arange(3)]})
    with pytest.raises(InvalidInputError, match=r"takes 1 inputs \(s\), found 0"):
        executable.run([])
    with pytest.raises(InvalidInputError, match="call run"):
        executable.warmup({"s": (3,)})
    with pytest.raises(ExportError, match="sequences"):
        executable.export_library("model.so", shapes={"s": (3,)})
