"""Recurrent layers whose steps and batch are arguments of native code."""

from __future__ import annotations

import numpy as np
import pytest
from dynamic_models import Sizes, check_one_program, compiled
from helpers.programs import fixed_programs, generic_programs
from onnx import ModelProto, TensorProto

from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_HIDDEN, _WIDTH = 6, 5
_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def _layer(
    kind: str, direction: str, *, states: bool = False, lengths: bool = False, **attributes: object
) -> ModelProto:
    """Returns a layer of `x [steps, batch, 5]`, the lengths and the initial states, with all
    results.
    """
    b = GraphBuilder("layer", seed=0, opset=14)
    count = 2 if direction == "bidirectional" else 1
    rows = _GATES[kind] * _HIDDEN
    x = b.input("x", ["steps", "batch", _WIDTH])
    weights = [b.normal((count, rows, width), 0.4) for width in (_WIDTH, _HIDDEN)]
    length = b.input("lengths", ["batch"], TensorProto.INT32) if lengths else ""
    names = ["h", "c"][: 2 if kind == "LSTM" else 1] if states else []
    firsts = [b.input(name, [count, "batch", _HIDDEN]) for name in names]
    results = b.ops(
        kind,
        *(x, *weights, b.normal((count, 2 * rows), 0.1), length, *firsts),
        outputs=3 if kind == "LSTM" else 2,
        hidden_size=_HIDDEN,
        direction=direction,
        **attributes,
    )
    for number, result in enumerate(results):
        b.output(result, f"y{number}", [None] * (3 if number else 4))
    return b.build()


def _sizes(*pairs: tuple[int, int]) -> list[Sizes]:
    return [{"steps": steps, "batch": batch} for steps, batch in pairs]


@pytest.mark.values
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_layer_is_one_program(kind: str, direction: str) -> None:
    states = direction != "reverse"
    sizes = _sizes((5, 3), (1, 1), (9, 1), (1, 4), (33, 2))
    check_one_program(_layer(kind, direction, states=states), sizes)


@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (3, 0), (0, 0)])
def test_without_steps_the_states_stay(steps: int, batch: int) -> None:
    """Checks the shapes and states by hand, since ONNX Runtime crashes there."""
    model = _layer("LSTM", "forward", states=True)
    inputs = random_inputs(model, dims={"steps": steps, "batch": batch})
    with compiled(model) as executable:
        results = executable.run(inputs)
        assert len(fixed_programs(executable)) == 0
    assert results["y0"].shape == (steps, 1, batch, _HIDDEN)
    assert np.array_equal(results["y1"], inputs["h"])
    assert np.array_equal(results["y2"], inputs["c"])


@pytest.mark.parametrize(
    ("kind", "direction", "attributes"),
    [
        ("RNN", "bidirectional", {}),
        ("RNN", "reverse", {"activations": ["Relu"], "clip": 0.7}),
        ("LSTM", "bidirectional", {"input_forget": 1}),
        ("GRU", "forward", {"linear_before_reset": 1, "activations": ["HardSigmoid", "Tanh"]}),
        ("GRU", "reverse", {}),
    ],
)
def test_lengths_and_other_layers(kind: str, direction: str, attributes: dict[str, object]) -> None:
    """Checks batches in which each sequence has its own length."""
    model = _layer(kind, direction, states=True, lengths=True, **attributes)
    with compiled(model) as executable:
        for sizes in _sizes((5, 3), (2, 1), (9, 1), (2, 4), (33, 2)):
            inputs = random_inputs(model, dims=sizes)
            rng = np.random.default_rng(1)
            inputs["lengths"] = rng.integers(1, sizes["steps"] + 1, sizes["batch"], np.int32)
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        assert len(generic_programs(executable)) == 1
        assert len(fixed_programs(executable)) == 0


def test_peepholes() -> None:
    b = GraphBuilder("layer", seed=0, opset=14)
    x = b.input("x", ["steps", "batch", _WIDTH])
    weights = [b.normal((1, 4 * _HIDDEN, width), 0.4) for width in (_WIDTH, _HIDDEN)]
    peepholes = b.normal((1, 3 * _HIDDEN), 0.4)
    y, _ = b.ops("LSTM", x, *weights, *[""] * 4, peepholes, outputs=2, hidden_size=_HIDDEN)
    b.output(y, "y", [None] * 4)
    check_one_program(b.build(), _sizes((5, 3), (1, 1), (9, 1), (1, 4)))
