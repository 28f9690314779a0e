"""Fusion of ops into the convolution before them, if the values between have no other user."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from single_nodes import numbers

from byoc_mlir.interpreter.folding import folded
from byoc_mlir.interpreter.model import InterpretedModel
from byoc_mlir.tensors import Array

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
one (float[N, 3, H, W] x) => ({results}) {{
  y = Conv({operands})
  z = BatchNormalization<epsilon = 0.01>(y, s, t, m, v)
  r = {last}
}}
"""

TENSORS = {
    "w": numbers(4, 3, 3, 3),
    "b": numbers(4),
    "s": numbers(4, seed=1),
    "t": numbers(4, seed=2),
    "m": numbers(4, seed=3),
    "v": np.abs(numbers(4, seed=4)),
}


def _kinds(model: Any, tensors: dict[str, Array]) -> list[str]:
    return [node.op_type for node in folded(model.graph, tensors)[0]]


def _model(
    operands: str = "x, w, b", last: str = "Neg(z)", results: str = "float[N,4,H2,W2] r"
) -> Any:
    return onnx.parser.parse_model(MODEL.format(operands=operands, last=last, results=results))


def _check(model: Any, tensors: dict[str, Array], **more: Array) -> None:
    """Checks that results are ONNX Runtime's."""
    feeds = {"x": numbers(2, 3, 9, 8, seed=5), **more}
    found = InterpretedModel(model, tensors, 1).run(feeds)
    whole = onnx.ModelProto.FromString(model.SerializeToString())
    whole.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in tensors.items())
    session = onnxruntime.InferenceSession(whole.SerializeToString())
    for one, expected in zip(found.values(), session.run(None, feeds), strict=True):
        assert one.flags.c_contiguous
        np.testing.assert_allclose(one, np.asarray(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("operands", ["x, w, b", "x, w"])
def test_normalisations_are_taken_over(operands: str) -> None:
    model = _model(operands)
    assert _kinds(model, TENSORS) == ["Conv", "Neg"]
    _check(model, TENSORS)


@pytest.mark.parametrize(
    ("last", "results"),
    [
        ("Neg(y)", "float[N,4,H2,W2] r, float[N,4,H2,W2] z"),
        ("Add(z, y)", "float[N,4,H2,W2] r"),
        ("Neg(z)", "float[N,4,H2,W2] r, float[N,4,H2,W2] y"),
    ],
)
def test_what_others_read_stays(last: str, results: str) -> None:
    model = _model(last=last, results=results)
    assert "BatchNormalization" in _kinds(model, TENSORS)
    _check(model, TENSORS)


@pytest.mark.parametrize("name", TENSORS)
def test_what_an_input_replaces_stays(name: str) -> None:
    model = _model()
    shape = TENSORS[name].shape
    model.graph.input.append(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
    assert "BatchNormalization" in _kinds(model, TENSORS)
    _check(model, TENSORS)
    _check(model, TENSORS, **{name: np.abs(numbers(*shape, seed=6))})


def test_what_is_no_constant_stays() -> None:
    model = _model("x, u")
    model.graph.node.insert(0, helper.make_node("Abs", ["w"], ["u"]))
    assert "BatchNormalization" in _kinds(model, TENSORS)
    _check(model, TENSORS)


def test_two_readers_of_one_weight_have_their_own() -> None:
    model = _model("x, w, b", "Add(z, q)")
    more = [
        helper.make_node("Conv", ["x", "w"], ["p"]),
        helper.make_node("BatchNormalization", ["p", "t", "s", "b", "v"], ["q"]),
    ]
    for node in more:
        model.graph.node.insert(len(model.graph.node) - 1, node)
    assert _kinds(model, TENSORS) == ["Conv", "Conv", "Add"]
    _check(model, TENSORS)


LIMITS = {"lo": np.array(-0.5, np.float32), "hi": np.array([0.75], np.float32)}
TEXTS = [
    ("Relu(z)", 17),
    ("Clip(z)", 17),
    ("Clip(z, lo)", 17),
    ("Clip(z, lo, hi)", 17),
    ("Clip(z, hi, lo)", 17),
    ('Clip(z, "", hi)', 17),
    ("Clip<min = -0.5>(z)", 7),
    ("Clip<min = -0.5, max = 0.75>(z)", 9),
]


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize(("last", "opset"), TEXTS)
def test_limits_are_taken_over(last: str, opset: int, group: int) -> None:
    model = _model("x, k", last)
    model.opset_import[0].version = opset
    model.graph.node[0].attribute.append(helper.make_attribute("group", group))
    tensors = {**TENSORS, **LIMITS, "k": numbers(3, 3 // group, 3, 3)}
    tensors |= {name: tensors[name][:3] for name in "stmv"}
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert _kinds(model, tensors) == ["Conv"]
    _check(model, tensors)


def test_limits_of_long_convolutions() -> None:
    model = _model("x, k", "Clip(z, lo, hi)")
    tensors = {**TENSORS, **LIMITS, "k": numbers(64, 3, 5, 5) / 10}
    tensors |= {name: np.tile(tensors[name], 16) for name in "stmv"}
    _check(model, tensors, x=numbers(2, 3, 150, 150))


def test_limits_that_are_no_constants_stay() -> None:
    model = _model(last="Clip(z, u)")
    model.graph.node.insert(0, helper.make_node("Abs", ["lo"], ["u"]))
    tensors = {**TENSORS, **LIMITS}
    assert _kinds(model, tensors) == ["Abs", "Conv", "Clip"]
    _check(model, tensors)


def test_limits_of_what_others_read_stay() -> None:
    model = _model(last="Relu(z)", results="float[N,4,H2,W2] r, float[N,4,H2,W2] z")
    assert _kinds(model, TENSORS) == ["Conv", "Relu"]
    _check(model, TENSORS)


@pytest.mark.parametrize("name", "stmvb")
def test_what_does_not_fit_stays(name: str) -> None:
    tensors = {**TENSORS, name: numbers(1)}
    assert "BatchNormalization" in _kinds(_model(), tensors)


def test_constants_that_nobody_reads_are_let_go() -> None:
    assert folded(_model().graph, {**TENSORS, **LIMITS})[1].keys() == {"z/weights", "z/bias"}


@pytest.mark.parametrize("name", ["z/weights", "z/bias"])
def test_names_of_others_are_not_taken(name: str) -> None:
    model = _model(last="Mul(z, k)")
    model.graph.node[-1].input[1] = name
    _check(model, {**TENSORS, name: numbers(4, 1, 1, seed=6)})
