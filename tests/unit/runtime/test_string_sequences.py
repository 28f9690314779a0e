"""Sequences of strings: as outputs, as inputs, and between parts of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

import byoc_mlir
from byoc_mlir.errors import InvalidModelError, UnsupportedModelError
from byoc_mlir.testing.reference import run_onnxruntime

STRING = TensorProto.STRING
X, Y = np.array(["a", "bé"], object), np.array(["c"], object)


def _node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), op_type, **attributes)


def _tensor(name: str, kind: int = STRING, shape: Sequence[int | str] | None = None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def _sequence(name: str) -> ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, STRING, None)


def _model(nodes: list[NodeProto], outputs: list[Any], *, sequence: bool = False) -> ModelProto:
    first = _sequence("x") if sequence else _tensor("x", shape=["n"])
    graph = helper.make_graph(nodes, "g", [first, _tensor("y", shape=["m"])], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 10
    return model


def _agrees(model: ModelProto, feeds: dict[str, Any]) -> None:
    wanted: dict[str, Any] = run_onnxruntime(model, feeds)
    with byoc_mlir.compile(model, (), fallback="allow") as executable:
        for _ in range(2):
            found: dict[str, Any] = executable.run(feeds)
            assert list(found) == list(wanted)
            for name, value in wanted.items():
                assert _as_lists(found[name]) == _as_lists(value)


def _as_lists(value: Any) -> Any:
    return [each.tolist() for each in value] if isinstance(value, list) else value.tolist()


def test_outputs() -> None:
    nodes = [
        _node("SequenceConstruct", "x y x", "s"),
        _node("SequenceErase", "s", "t"),
        _node("SequenceLength", "t", "length"),
        _node("Cast", "length", "count", to=TensorProto.FLOAT),
        _node("SequenceEmpty", "", "none", dtype=STRING),
    ]
    outputs = [_sequence("s"), _tensor("count", TensorProto.FLOAT), _sequence("none")]
    _agrees(_model(nodes, outputs), {"x": X, "y": Y})


def test_inputs() -> None:
    nodes = [_node("ConcatFromSequence", "x", "c", axis=0), _node("SequenceInsert", "x y", "s")]
    model = _model(nodes, [_tensor("c"), _sequence("s")], sequence=True)
    for items in ([X, Y], [Y]):
        _agrees(model, {"x": items, "y": Y})


def test_between_parts_that_are_interpreted() -> None:
    nodes = [
        _node("SplitToSequence", "x", "s", axis=0),
        _node("SequenceLength", "s", "length"),
        _node("Neg", "length", "last"),  # has native code
        _node("SequenceAt", "s last", "first"),
        _node("SequenceInsert", "s y last", "t"),
    ]
    _agrees(_model(nodes, [_tensor("first"), _sequence("t")]), {"x": X, "y": Y})


def test_where_an_op_has_no_strings() -> None:
    nodes = [_node("Equal", "x x", "e")]
    model = _model(nodes, [_tensor("e", TensorProto.BOOL)])
    model.opset_import[0].version = 13
    with pytest.raises(InvalidModelError, match=r"'Equal' .*input 'A' is of strings"):
        byoc_mlir.compile(model, ())


def test_what_is_not_proven_is_refused_when_compiling() -> None:
    body = helper.make_graph(
        [_node("Identity", "c", "d"), _node("StringConcat", "s s", "t")],
        "b",
        [_tensor("i", TensorProto.INT64, []), _tensor("c", TensorProto.BOOL, []), _tensor("s")],
        [_tensor("d", TensorProto.BOOL, []), _tensor("t")],
    )
    nodes = [
        _node("Constant", "", "m", value_int=2),
        helper.make_node("Loop", ["m", "", "x"], ["z"], "here", body=body),
    ]
    with pytest.raises(UnsupportedModelError, match=r"here .*Loop.*last resort"):
        byoc_mlir.compile(_model(nodes, [_tensor("z")]), ())
