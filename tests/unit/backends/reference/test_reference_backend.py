"""The fallback interpreter: what has no native code runs in the ONNX reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import FallbackForbiddenError
from byoc_mlir.frontend import import_model

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def _model() -> ModelProto:
    """Dropout as in training, with a fixed seed, between ops that have native code."""
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], "exp"),
        helper.make_node("Dropout", ["a", "ratio", "training"], ["r"], "first", seed=3),
        helper.make_node("Dropout", ["x", "ratio", "training"], ["n"], "second", seed=4),
        helper.make_node("Mul", ["a", "r"], ["m"], "mul"),
        helper.make_node("Add", ["m", "n"], ["y"], "add"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, X.shape)
    constants = {"ratio": np.float32(0.25), "training": np.bool_(True)}
    tensors = [numpy_helper.from_array(np.array(c), name) for name, c in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


@pytest.mark.parametrize("targets", [(), ("dnnl",), ("reference",)])
def test_nodes_without_native_code(targets: tuple[str, ...]) -> None:
    model = _model()
    executable = byoc_mlir.compile(model, targets=targets, fallback="allow")
    (expected,) = ReferenceEvaluator(model).run(None, {"x": X})
    assert isinstance(expected, np.ndarray)
    np.testing.assert_allclose(executable.run([X])["y"], expected, rtol=1e-5)
    report = executable.report()
    assert [row.node for row in report.placed("reference")] == ["first", "second"]
    assert {row.implementation for row in report.placed("reference")} == {"onnx.reference"}


def test_the_warning_names_them() -> None:
    with pytest.warns(UserWarning, match=r"2 node\(s\) have no native code.*\n.*first.*\n.*second"):
        byoc_mlir.compile(_model(), targets=())


def test_it_can_be_forbidden() -> None:
    with pytest.raises(FallbackForbiddenError, match=r"first \(Dropout\)"):
        byoc_mlir.compile(_model(), targets=(), fallback="forbid")


def test_the_node_is_in_the_text() -> None:
    module = import_model(_model()).module
    text = str(module)
    again = Parser(make_context(), text).parse_module()
    again.verify()
    assert str(again) == text
    (first, _) = (op for op in again.walk() if isinstance(op, OnnxNodeOp))
    assert (first.op_type.data, first.proto.name) == ("Dropout", "first")
