"""Inputs that are maps, as converters of scikit-learn's DictVectorizer write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper

import byoc_mlir
from byoc_mlir.errors import InvalidInputError, UnsupportedModelError


def map_model(
    op_type: str, key: int, value: int, output: int, **attributes: Any
) -> onnx.ModelProto:
    """Returns `y = op(m), z = y + y`; for strings only `z`, which is 1 for 'u'."""
    map_type = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    nodes = [helper.make_node(op_type, ["m"], ["y"], "op", domain="ai.onnx.ml", **attributes)]
    outputs = [helper.make_tensor_value_info("y", output, [1, None])]
    if output == T.STRING:
        table = {"keys_strings": ["u"], "values_int64s": [1], "default_int64": 0}
        nodes.append(helper.make_node("LabelEncoder", ["y"], ["z"], domain="ai.onnx.ml", **table))
        outputs = [helper.make_tensor_value_info("z", T.INT64, [1, None])]
    else:
        nodes.append(helper.make_node("Add", ["y", "y"], ["z"], "twice"))
        outputs.append(helper.make_tensor_value_info("z", output, [1, None]))
    graph = helper.make_graph(nodes, "g", [helper.make_value_info("m", map_type)], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(model: onnx.ModelProto, value: dict[Any, Any]) -> None:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    want: list[Any] = list(session.run(None, {"m": value}))
    with byoc_mlir.compile(model, targets=()) as executable:
        got = list(executable.run({"m": value}).values())
    for found, expected in zip(got, want, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


WORDS, NUMBERS = {"string_vocabulary": ["a", "b", "c"]}, {"int64_vocabulary": [7, 3, 1]}


@pytest.mark.parametrize(
    ("key", "value", "attributes", "given"),
    [
        (T.STRING, T.FLOAT, WORDS, {"b": 2.5, "z": 5.0}),
        (T.INT64, T.FLOAT, NUMBERS, {7: 2.0, 1: 5.0, 2: 3.0}),
    ],
)
def test_vectors(key: int, value: int, attributes: Any, given: dict[Any, Any]) -> None:
    check(map_model("DictVectorizer", key, value, value, **attributes), given)


def test_vectors_of_types_that_onnxruntime_does_not_take_from_python() -> None:
    for type_, attributes, given, want in (
        (T.INT64, WORDS, {"b": 2}, [0, 4, 0]),
        (T.DOUBLE, NUMBERS, {1: 0.1}, [0, 0, 0.2]),
        (T.STRING, NUMBERS, {7: "u", 3: "v"}, [1, 0, 0]),
    ):
        key = T.STRING if attributes is WORDS else T.INT64
        model = map_model("DictVectorizer", key, type_, type_, **attributes)
        with byoc_mlir.compile(model, targets=()) as executable:
            assert executable.run({"m": given})["z"].tolist() == [want]
            assert not any(executable.run([{}])["z"][0])


@pytest.mark.parametrize("cast_to", ["TO_FLOAT", "TO_INT64"])
@pytest.mark.parametrize(
    "attributes", [{"map_form": "DENSE"}, {"map_form": "SPARSE", "max_map": 6}]
)
def test_casts(cast_to: str, attributes: Any) -> None:
    output = T.FLOAT if cast_to == "TO_FLOAT" else T.INT64
    model = map_model("CastMap", T.INT64, T.FLOAT, output, cast_to=cast_to, **attributes)
    check(model, {3: 2.7, 1: -5.5, 9: 4.0})
    check(model, {2: 1.0})


def test_a_map_beside_tensors() -> None:
    model = map_model("DictVectorizer", T.STRING, T.FLOAT, T.FLOAT, **WORDS)
    model.graph.input.append(helper.make_tensor_value_info("x", T.FLOAT, ["n", 3]))
    model.graph.node[1].input[1] = "x"
    model.graph.output[1].type.tensor_type.shape.dim[0].dim_param = "n"
    with byoc_mlir.compile(model, targets=()) as executable:
        assert [info.name for info in executable.inputs] == ["m", "x"]
        got = executable.run({"m": {"c": 1.0}, "x": np.ones((2, 3), np.float32)})
        assert got["z"].tolist() == [[1, 1, 2], [1, 1, 2]]


def test_refusals() -> None:
    model = map_model("DictVectorizer", T.STRING, T.FLOAT, T.FLOAT, **WORDS)
    with byoc_mlir.compile(model, targets=()) as executable:
        for wrong in ([1.0], {"a": "one"}, {"a": []}, np.ones((1, 3), np.float32)):
            with pytest.raises(InvalidInputError, match="input 'm' must be a map"):
                executable.run({"m": wrong})
    for attributes in ({"cast_to": "TO_STRING"}, {"map_form": "ROUND"}):
        other = map_model("CastMap", T.INT64, T.FLOAT, T.FLOAT, **attributes)
        with pytest.raises(UnsupportedModelError, match="accepted are TO_FLOAT, TO_INT64"):
            byoc_mlir.compile(other, targets=())
    twice = map_model("DictVectorizer", T.INT64, T.FLOAT, T.FLOAT, int64_vocabulary=[1, 1])
    with pytest.raises(UnsupportedModelError, match="some of them twice"):
        byoc_mlir.compile(twice, targets=())
