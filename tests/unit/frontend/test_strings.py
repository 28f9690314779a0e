"""Strings: the fallback interpreter runs their nodes, and all other nodes are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx_models import model_of, node

import byoc_mlir
from byoc_mlir.errors import ExecutionError, FallbackForbiddenError, InvalidInputError
from byoc_mlir.frontend.strings import string_parts
from byoc_mlir.testing.reference import run_onnxruntime

WORDS = np.array(["a b", "Good Morning world", "x"], object)
NUMBERS = np.array([[1.0, 2], [3, 4], [5, 6]], np.float32)


def _model() -> ModelProto:
    """Returns a model that scales values by the number of words in sentences, and counts
    greetings."""
    nodes = [
        node("StringConcat", "texts ending", "long", name="concat"),
        node("StringSplit", "long", "words counts", delimiter=" ", name="split"),
        node("Cast", "counts", "factors", to=TensorProto.FLOAT, name="cast"),
        node("Unsqueeze", "factors one", "column", name="unsqueeze"),
        node("Mul", "x column", "scaled", name="scale"),
        node("Constant", "", "hello", value_string="good", name="hello"),
        node("Equal", "words hello", "greets", name="equal"),
        node("Cast", "greets", "ones", to=TensorProto.FLOAT, name="ones"),
        node("ReduceSum", "ones", "greetings", keepdims=0, name="count"),
    ]
    model = model_of(
        nodes,
        [("texts", TensorProto.STRING, ("n",)), ("x", TensorProto.FLOAT, ("n", 2))],
        ["scaled", "greetings", "words", "greets"],
        initializers=[
            numpy_helper.from_array(np.array([1]), "one"),
            numpy_helper.from_array(np.array(" good", object), "ending"),
        ],
    )
    types = {"words": TensorProto.STRING, "greets": TensorProto.BOOL}
    for output in model.graph.output:
        output.type.tensor_type.elem_type = types.get(output.name, TensorProto.FLOAT)
    model.ir_version = 10
    return model


def test_parts_alternate() -> None:
    parts = string_parts(_model())
    assert [([each.name for each in part.stage.nodes], part.is_apart) for part in parts] == [
        (["hello", "concat", "split", "equal"], True),
        (["cast", "unsqueeze", "scale", "ones", "count"], False),
    ]


def test_strings_between_numbers() -> None:
    model = _model()
    with pytest.warns(UserWarning, match=r"(?s)have no native code.*concat .*split .*equal "):
        executable = byoc_mlir.compile(model, targets=())
    with pytest.raises(ExecutionError, match="nothing is compiled yet"):
        executable.report()
    for texts in (WORDS, WORDS[:2], WORDS):
        feeds: dict[str, Any] = {"texts": texts, "x": NUMBERS[: len(texts)]}
        found = executable.run(feeds)
        wanted = run_onnxruntime(model, feeds)
        assert list(found) == list(wanted)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)
        assert found["words"].dtype == object
    report = executable.report()
    assert {row.node for row in report.placed("reference")} == {"hello", "concat", "split", "equal"}
    assert {"scale", "count"} <= {row.node for row in report.placed("host")}
    executable.close()


def test_they_can_be_forbidden() -> None:
    with pytest.raises(FallbackForbiddenError, match=r"split \(StringSplit\)"):
        byoc_mlir.compile(_model(), targets=(), fallback="forbid")


def test_inputs_are_arrays_of_texts_of_any_type() -> None:
    executable = byoc_mlir.compile(_model(), targets=(), fallback="allow")
    wanted = executable.run([WORDS, NUMBERS])
    found = executable.run([WORDS.astype(str), NUMBERS])
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in wanted.items()
    }
    with pytest.raises(InvalidInputError, match="'texts'"):
        executable.run([NUMBERS[:, 0], NUMBERS])


def test_models_without_strings_are_left_alone() -> None:
    assert string_parts(model_of([node("Relu", "x", "y")])) == ()


def test_large_constants_of_nodes_on_strings() -> None:
    places = np.random.default_rng(0).integers(0, 3, 1000)
    model = model_of(
        [node("Gather", "texts places", "y", name="gather")],
        [("texts", TensorProto.STRING, (3,))],
        ["y"],
        initializers=[numpy_helper.from_array(places, "places")],
    )
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.STRING
    with byoc_mlir.compile(model, (), fallback="allow") as executable:
        np.testing.assert_array_equal(executable.run({"texts": WORDS})["y"], WORDS[places])


@pytest.mark.parametrize("pattern", ["(a+)+$", r"\w+@\w+\.com", "(?i)ab|c.*", "[[:alpha:]]+"])
def test_patterns_match_as_re2_in_linear_time(pattern: str) -> None:
    types = [("x", TensorProto.STRING, (2, "n"))]
    model = model_of([node("RegexFullMatch", "x", "y", pattern=pattern)], types, ["y"])
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    texts = np.array([["a" * 60 + "!", "a" * 60, "ä"], ["ab\n", "x@y.com", "AB"]], object)
    with pytest.warns(UserWarning, match="have no native code"):
        executable = byoc_mlir.compile(model)
    (expected,) = run_onnxruntime(model, {"x": texts}).values()
    np.testing.assert_array_equal(executable.run({"x": texts})["y"], expected)


def test_a_pattern_that_re2_does_not_have() -> None:
    types = [("x", TensorProto.STRING, ("n",))]
    model = model_of([node("RegexFullMatch", "x", "y", pattern=r"(a)\1")], types, ["y"])
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    warned = pytest.warns(UserWarning, match="have no native code")
    with warned, pytest.raises(ExecutionError, match="escape sequence"):
        byoc_mlir.compile(model).run({"x": WORDS})
