"""Faults planted in the compiler, and the tools that find them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import planted_backend
import pytest
from dnnl_json import runtime
from onnx import ModelProto, numpy_helper, parser

import byoc_mlir
from byoc_mlir.dialects.relay import elementwise, nn
from byoc_mlir.dialects.relay.base import sizes_of
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.frontend import registry
from byoc_mlir.lowering.relay_to_linalg import elementwise as lowered
from byoc_mlir.runtime.verification import Bisection
from byoc_mlir.transforms import fold_batch_norm
from byoc_mlir.transforms.rewriting import constant_array
from byoc_mlir.transforms.simplify import Simplify

_MODEL = """<ir_version: 10, opset_import: ["" : 18]>
net (float[3, 8] x) => (float[3, 4] y) <float[8, 6] w1, float[6] b1, float[6, 5] w2, float[5] b2,
    float[5, 4] w3, float[4] b3, float[4] s, float[4] v> {
  [product1] p1 = MatMul (x, w1)
  [bias1] a1 = Add (p1, b1)
  [relu1] r1 = Relu (a1)
  [product2] p2 = MatMul (r1, w2)
  [bias2] a2 = Add (p2, b2)
  [tangent] t2 = Tanh (a2)
  [sine] s2 = Sin (t2)
  [product3] p3 = MatMul (s2, w3)
  [norm] n3 = BatchNormalization (p3, s, b3, b3, v)
  [difference] d3 = Sub (n3, b3)
  [second] h3 = Tanh (d3)
  [gate] g3 = Mul (h3, n3)
  [root] q3 = Atan (g3)
  [shares] y = Softmax (q3)
}"""


def _model(text: str = _MODEL) -> ModelProto:
    model: ModelProto = parser.parse_model(text)
    rng = np.random.default_rng(0)
    for value in model.graph.value_info:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        array = rng.uniform(0.2, 1, shape) - 0.5 * (value.name[0] in "wb")
        array *= 1e-4 if value.name == "v" else 1
        tensor = numpy_helper.from_array(array.astype(np.float32), value.name)
        model.graph.initializer.append(tensor)
    return model


_INPUTS = {"x": np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)}


def _bisected(
    targets: Sequence[str],
    against: str = "onnxruntime",
    model: ModelProto | None = None,
    **options: Any,
) -> Bisection:
    model = _model() if model is None else model
    with byoc_mlir.compile(
        model, targets, 1, fallback="allow", cache=False, **options
    ) as executable:
        found = executable.bisect(_INPUTS, model=model, against=against)
    assert not found.verification.agrees
    assert all(len(line) <= 80 for line in str(found).splitlines())
    return found


def _nodes(found: Bisection) -> tuple[str, ...]:
    part = found.verification.part
    assert part is not None
    return part.nodes


def _backend_fault(fault: str, **options: Any) -> Bisection:
    return _bisected((f"{planted_backend.Planted.name}{{fault={fault}}}",), **options)


def test_nothing_is_wrong() -> None:
    model = _model()
    for targets in (("planted",), ()):
        with byoc_mlir.compile(model, targets, 1, fallback="allow", cache=False) as executable:
            for against in ("onnxruntime", "reference", "host"):
                found = executable.verify(_INPUTS, model=model, against=against)
                assert found.agrees
                assert not found.boundaries
                assert str(found).startswith(f"the model agrees with {against}")
            assert executable.bisect(_INPUTS, model=model).kind is None


def test_a_wrong_weight_in_a_backend() -> None:
    found = _backend_fault("weight")
    assert _nodes(found) == ("product2",)
    assert (found.kind, found.names) == ("backend", ("planted",))


def test_swapped_operands_in_a_backend() -> None:
    found = _backend_fault("operands", disable=["fold-batch-norm"])
    assert _nodes(found) == ("difference",)
    assert (found.kind, found.names) == ("backend", ("planted",))


def test_a_missing_relu_in_a_backend() -> None:
    found = _backend_fault("relu")
    assert _nodes(found) == ("product1", "bias1", "relu1")
    part = found.verification.part
    assert part is not None
    assert part.composites == ("planted.dense_bias_relu",)
    assert part.region.startswith("planted_main")
    assert (found.kind, found.names) == ("pattern", ("planted.dense_bias_relu",))


def test_a_missing_bias_in_a_backend() -> None:
    found = _backend_fault("bias")
    assert _nodes(found) == ("product1", "bias1")
    assert found.names == ("planted.dense_bias",)


def test_an_epsilon_in_a_backend() -> None:
    found = _backend_fault("epsilon", disable=["fold-batch-norm"])
    assert _nodes(found) == ("norm",)
    assert (found.kind, found.names) == ("backend", ("planted",))


def test_a_bad_pass_of_a_backend() -> None:
    found = _backend_fault("rewrite", disable=["fold-batch-norm"])
    assert _nodes(found) == ("difference",)
    assert (found.kind, found.names) == ("pass", ("planted-rewrite",))


def test_a_pattern_that_computes_something_else() -> None:
    found = _backend_fault("wide")
    assert _nodes(found) == ("second", "gate")
    assert (found.kind, found.names) == ("pattern", ("planted.gate",))


def test_a_bad_rewrite_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Simplify.apply

    def bad(self: Simplify, ctx: Any, op: Any) -> None:
        good(self, ctx, op)
        for found in list(op.walk()):
            if isinstance(found, nn.ReluOp):
                found.output.replace_all_uses_with(found.data)

    monkeypatch.setattr(Simplify, "apply", bad)
    for targets in ((), ("planted",)):
        found = _bisected(targets)
        assert _nodes(found)[-1] == "relu1"
        assert (found.kind, found.names) == ("pass", ("simplify",))


def test_an_epsilon_that_a_pass_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    good = fold_batch_norm._affine_of_batch_norm

    def bad(op: nn.BatchNormOp) -> Any:
        gamma, beta, mean, variance = map(np.asarray, map(constant_array, op.operands[1:]))
        right = good(op)
        assert right is not None
        scale = gamma / np.sqrt(variance)
        return fold_batch_norm.Affine(op.data, op.positive_axis, scale, beta - mean * scale)

    monkeypatch.setattr(fold_batch_norm, "_affine_of_batch_norm", bad)
    found = _bisected(())
    assert _nodes(found) == ("product3", "norm")
    assert (found.kind, found.names) == ("pass", ("fold-batch-norm",))


def test_swapped_operands_in_the_import(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = registry._REGISTRY["", "Sub"]

    def swapped(op: registry.OnnxOp) -> registry.OnnxOp:
        return replace(op, function=lambda context, lhs, rhs: op.function(context, rhs, lhs))

    monkeypatch.setitem(registry._REGISTRY, ("", "Sub"), tuple(map(swapped, versions)))
    found = _bisected((), disable=["fold-batch-norm"])
    assert _nodes(found) == ("difference",)
    assert (found.kind, found.names) == (None, ())
    assert "the import of the node" in str(found).replace("\n  ", " ")


def test_a_wrong_function_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(lowered.BODIES, elementwise.SinOp, lowered.BODIES[elementwise.CosOp])
    found = _bisected(("planted",))
    assert _nodes(found) == ("sine",)
    part = found.verification.part
    assert part is not None
    assert part.placement == "host"
    assert found.kind is None


def test_a_fault_that_shows_only_in_a_larger_region() -> None:
    found = _backend_fault("merged")
    assert _nodes(found)[0] in ("product1", "relu1", "bias1")
    assert "product2" in _nodes(found)
    assert (found.kind, found.names) == ("pass", ("merge-compiler-regions",))


def test_a_missing_relu_in_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    good = runtime._attributes
    monkeypatch.setattr(runtime, "_attributes", lambda kernel: good(kernel.removesuffix("_relu")))
    found = _bisected(("dnnl_json",))
    assert _nodes(found) == ("product1", "bias1", "relu1")
    assert (found.kind, found.names) == ("pattern", ("dnnl_json.dense_bias_relu",))


def test_a_pass_that_is_wrong_about_symbols_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Simplify.apply

    def bad(self: Simplify, ctx: Any, op: Any) -> None:
        good(self, ctx, op)
        for found in list(op.walk()):
            if isinstance(found, nn.ReluOp) and is_symbolic(sizes_of(found.output)):
                found.output.replace_all_uses_with(found.data)

    monkeypatch.setattr(Simplify, "apply", bad)
    found = _bisected((), model=_model(_MODEL.replace("[3, 8] x", "[n, 8] x")))
    assert _nodes(found) == ("relu1",)
    assert (found.kind, found.names) == ("pass", ("simplify",))
