"""The safety net: what has no native code runs in the ONNX reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import FallbackForbiddenError
from byoc_mlir.frontend import import_model

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def _model() -> ModelProto:
    """Random numbers of a fixed seed, between ops that have native code."""
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], "exp"),
        helper.make_node("RandomUniformLike", ["a"], ["r"], "random", seed=3.0, low=-1.0),
        helper.make_node("RandomNormal", [], ["n"], "normal", seed=4.0, shape=[4]),
        helper.make_node("Mul", ["a", "r"], ["m"], "mul"),
        helper.make_node("Add", ["m", "n"], ["y"], "add"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, X.shape)
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


@pytest.mark.parametrize("targets", [(), ("dnnl",), ("reference",)])
def test_nodes_without_native_code(targets: tuple[str, ...]) -> None:
    model = _model()
    executable = byoc_mlir.compile(model, targets=targets, fallback="allow")
    (expected,) = ReferenceEvaluator(model).run(None, {"x": X})
    np.testing.assert_allclose(executable.run([X])["y"], expected, rtol=1e-5)
    report = executable.report()
    assert [row.node for row in report.placed("reference")] == ["random", "normal"]
    assert {row.implementation for row in report.placed("reference")} == {"onnx.reference"}


def test_the_warning_names_them() -> None:
    with pytest.warns(
        UserWarning, match=r"2 node\(s\) have no native code.*\n.*random.*\n.*normal"
    ):
        byoc_mlir.compile(_model(), targets=())


def test_it_can_be_forbidden() -> None:
    with pytest.raises(FallbackForbiddenError, match=r"random \(RandomUniformLike\)"):
        byoc_mlir.compile(_model(), targets=(), fallback="forbid")


def test_the_node_is_in_the_text() -> None:
    module = import_model(_model()).module
    text = str(module)
    again = Parser(make_context(), text).parse_module()
    again.verify()
    assert str(again) == text
    (random, _) = (op for op in again.walk() if isinstance(op, OnnxNodeOp))
    assert (random.op_type.data, random.proto.name) == ("RandomUniformLike", "random")
