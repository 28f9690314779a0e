"""Fallback interpreter: ops without native code run in the ONNX reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.models import parsed
from onnx import ModelProto, TensorProto, helper, numpy_helper
from registered import hide_own_ops
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import FallbackForbiddenError, UnsupportedModelError
from byoc_mlir.frontend import import_model, registry

X = np.random.default_rng(0).standard_normal((1, 90, 1)).astype(np.float32)


@pytest.fixture(autouse=True)
def _without_transforms(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Removes the native Fourier transform: no op with random inputs lacks native code."""
    hide_own_ops(monkeypatch)
    monkeypatch.delitem(registry._REGISTRY, ("", "DFT"))


def _model() -> ModelProto:
    """Returns Fourier transforms between ops that have native code."""
    sizes = ", ".join(map(str, X.shape))
    nodes = """
        [exp] a = Exp (x)
        [first] r = DFT <axis = 1> (a)
        [second] n = DFT <axis = 1> (x)
        [add] y = Add (r, n)
    """
    return parsed(f"(float[{sizes}] x) => (float[1, 90, 2] y)", nodes)


@pytest.mark.parametrize("targets", [(), ("dnnl",), ("reference",)])
def test_nodes_without_native_code(targets: tuple[str, ...]) -> None:
    model = _model()
    executable = byoc_mlir.compile(model, targets=targets, fallback="allow")
    expected = np.fft.fft(np.exp(X[0, :, 0]) + X[0, :, 0])
    found = executable.run([X])["y"][0]
    np.testing.assert_allclose(found[:, 0] + 1j * found[:, 1], expected, rtol=1e-3, atol=1e-2)
    report = executable.report()
    assert [row.node for row in report.placed("reference")] == ["first", "second"]
    assert {row.implementation for row in report.placed("reference")} == {"onnx.reference"}


def test_the_warning_names_them() -> None:
    with pytest.warns(UserWarning, match=r"2 node\(s\) have no native code.*\n.*first.*\n.*second"):
        byoc_mlir.compile(_model(), targets=())


def test_it_can_be_forbidden() -> None:
    with pytest.raises(FallbackForbiddenError, match=r"first \(DFT\)"):
        byoc_mlir.compile(_model(), targets=(), fallback="forbid")


def test_the_node_is_in_the_text() -> None:
    module = import_model(_model()).module
    text = str(module)
    again = Parser(make_context(), text).parse_module()
    again.verify()
    assert str(again) == text
    (first, _) = (op for op in again.walk() if isinstance(op, OnnxNodeOp))
    assert (first.op_type.data, first.proto.name) == ("DFT", "first")


def test_forms_that_are_not_proven_are_refused_with_the_reason() -> None:
    model = _model()
    gru = helper.make_node("GRU", ["x", "w", "w"], ["y"], "here", hidden_size=1)
    gru.attribute.append(helper.make_attribute("activations", ["Nonsense", "Tanh"]))
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.append(gru)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 3, 1), np.float32), "w"))
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    with pytest.raises(
        UnsupportedModelError, match=r"here \(GRU\): the activation 'Nonsense'.*last"
    ):
        byoc_mlir.compile(model, targets=())
