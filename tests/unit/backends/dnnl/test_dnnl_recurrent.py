"""Recurrent layers: the layers that oneDNN takes, and the order of gates and directions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from dnnl_models import check, model
from onnx import ModelProto, TensorProto, helper

import byoc_mlir
from byoc_mlir.testing.reference import random_inputs

GATES = {"LSTM": 4, "GRU": 3}


def _layer(
    kind: str,
    *,
    direction: str = "forward",
    batch: int = 16,
    hidden: int = 32,
    steps: int = 5,
    bias: bool = True,
    states: str = "",
    outputs: tuple[str, ...] = ("y",),
    **attributes: Any,
) -> ModelProto:
    """Returns one layer; `states` is the source of its initial states: `input`, `constant`, or
    empty.
    """
    directions, width = (2 if direction == "bidirectional" else 1), GATES[kind] * hidden
    names = ["h0", "c0"] if kind == "LSTM" else ["h0"]
    state = (directions, batch, hidden)
    weights: dict[str, Any] = {"w": (directions, width, 6), "r": (directions, width, hidden)}
    inputs = {"x": (steps, batch, 6)}
    if bias:
        weights["b"] = (directions, 2 * width)
    if states == "constant":
        weights |= dict.fromkeys(names, state)
    if states == "input":
        inputs |= dict.fromkeys(names, state)
    operands = ["x", "w", "r", "b" if bias else "", *(["", *names] if states else [])]
    node = helper.make_node(
        kind,
        operands,
        list(outputs),
        name="layer",
        hidden_size=hidden,
        direction=direction,
        **attributes,
    )
    built = model([node], inputs, weights, output=outputs[-1])
    for name in outputs[:-1]:
        if name:
            info = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
            built.graph.output.append(info)
    return built


def _composite(built: ModelProto, **options: Any) -> str:
    return check(built, **options).rows[0].composite


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("states", ["", "constant", "input"])
def test_lstm(direction: str, states: str) -> None:
    outputs = ("y", "last_h", "last_c")
    built = _layer("LSTM", direction=direction, states=states, outputs=outputs)
    assert _composite(built) == "dnnl.lstm"


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("linear", [0, 1])
def test_gru(direction: str, linear: int) -> None:
    built = _layer(
        "GRU",
        direction=direction,
        states="input",
        outputs=("y", "last_h"),
        linear_before_reset=linear,
    )
    assert _composite(built) == "dnnl.gru"


@pytest.mark.parametrize("kind", GATES)
def test_without_a_bias(kind: str) -> None:
    assert _composite(_layer(kind, bias=False)) == f"dnnl.{kind.lower()}"


def test_a_state_may_be_all_that_is_used() -> None:
    assert _composite(_layer("LSTM", outputs=("", "", "last_c"))) == "dnnl.lstm"
    assert _composite(_layer("GRU", outputs=("", "last_h"), direction="reverse")) == "dnnl.gru"


def test_a_batch_of_two() -> None:
    """Checks a batch so small that reshapes of it are views."""
    built = _layer("LSTM", batch=2, hidden=256, steps=3, direction="bidirectional")
    assert _composite(built) == "dnnl.lstm"


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"batch": 1, "hidden": 512}, "a batch of 1 with 512 elements each"),
        ({"batch": 8, "hidden": 16}, "a batch of 8 with 16 elements each"),
    ],
)
def test_what_is_faster_on_the_host_stays_there(sizes: dict[str, Any], reason: str) -> None:
    row = check(_layer("LSTM", **sizes)).rows[0]
    assert row.composite != "dnnl.lstm"
    assert reason in row.reason


@pytest.mark.parametrize("attributes", [{"clip": 0.4}, {"activations": ["HardSigmoid", "Tanh"]}])
def test_other_cells_are_not_onednns(attributes: dict[str, Any]) -> None:
    assert "dnnl.gru" not in {row.composite for row in check(_layer("GRU", **attributes)).rows}


def test_directions_at_the_same_time() -> None:
    """Checks two threads, one direction each, called from eight Python threads at once."""
    built = _layer("LSTM", direction="bidirectional", steps=20, batch=4, hidden=128)
    inputs = [random_inputs(built, seed=seed) for seed in range(8)]
    with (
        byoc_mlir.compile(built, targets=("dnnl",), threads=1) as alone,
        byoc_mlir.compile(built, targets=("dnnl",), threads=2) as both,
    ):
        expected = [alone.run(one)["y"] for one in inputs]
        with ThreadPoolExecutor(8) as pool:
            for _ in range(3):
                for answer, wanted in zip(pool.map(both.run, inputs), expected, strict=True):
                    np.testing.assert_array_equal(answer["y"], wanted)
