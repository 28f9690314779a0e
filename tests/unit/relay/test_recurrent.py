"""LSTM, GRU and RNN against ONNX Runtime, as numpy semantics and as native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.dialects.relay import RelayOp
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.reference import run_onnxruntime

STEPS, BATCH, INPUTS, HIDDEN = 5, 3, 4, 11  # 11 rows: one pass of eight and a rest
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _model(
    kind: str, direction: str, lengths: list[int] | None, *, bias: bool, **attributes: Any
) -> ModelProto:
    rng = np.random.default_rng(0)
    count, width = (2 if direction == "bidirectional" else 1), GATES[kind] * HIDDEN
    shapes = {"w": (count, width, INPUTS), "r": (count, width, HIDDEN), "b": (count, 2 * width)}
    arrays: dict[str, np.ndarray] = {
        name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    inputs = ["x", "w", "r", "b" if bias else "", "lengths" if lengths else "", "h"]
    if lengths:
        arrays["lengths"] = np.array(lengths, np.int32)
    states = ["h", "c"] if kind == "LSTM" else ["h"]
    inputs += states[1:]
    outputs = ["y", *(f"last_{state}" for state in states)]
    node = helper.make_node(
        kind, inputs, outputs, hidden_size=HIDDEN, direction=direction, **attributes
    )
    infos = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, BATCH, INPUTS])]
    infos += [
        helper.make_tensor_value_info(state, TensorProto.FLOAT, [count, BATCH, HIDDEN])
        for state in states
    ]
    graph = helper.make_graph(
        [node],
        "g",
        infos,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _check(model: ModelProto, expected_op: str | None) -> None:
    rng = np.random.default_rng(1)
    imported = import_model(model)
    inputs = {
        info.name: rng.standard_normal([int(size) for size in info.shape]).astype(np.float32)
        for info in imported.inputs
    }
    wanted = run_onnxruntime(model, inputs)
    names = {op.name for op in imported.module.walk() if isinstance(op, RelayOp)}
    assert (f"relay.nn.{expected_op}" in names) == (expected_op is not None)
    main = next(op for op in imported.module.ops if isinstance(op, FuncOp))
    evaluated = evaluate(main, [inputs[info.name] for info in imported.inputs])
    executable = byoc_mlir.compile(model, targets=(), fallback="allow", threads=2)
    computed = executable.run(inputs)
    for info, array in zip(imported.outputs, evaluated, strict=True):
        for found in (array, computed[info.name]):
            np.testing.assert_allclose(found, wanted[info.name], rtol=1e-4, atol=1e-5)


@pytest.mark.values
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("bias", [False, True])
def test_lstm(direction: str, bias: bool) -> None:
    _check(_model("LSTM", direction, None, bias=bias), "lstm")


@pytest.mark.values
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("linear_before_reset", [0, 1])
def test_gru(direction: str, linear_before_reset: int) -> None:
    model = _model("GRU", direction, None, bias=True, linear_before_reset=linear_before_reset)
    _check(model, "gru")


def test_full_lengths_are_no_lengths() -> None:
    _check(_model("LSTM", "forward", [STEPS] * BATCH, bias=True), "lstm")


@pytest.mark.values
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_sequences_of_several_lengths(kind: str, direction: str) -> None:
    _check(_model(kind, direction, [5, 1, 3], bias=True), None)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_other_activations(kind: str) -> None:
    names = {"LSTM": ["HardSigmoid", "Tanh", "Relu"], "GRU": ["HardSigmoid", "Tanh"]}[kind]
    _check(_model(kind, "forward", None, bias=True, activations=names, clip=0.8), None)
