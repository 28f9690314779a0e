"""Recurrent layers whose steps and batch are arguments of native code."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from sized_models import Sizes, check_one_program, compiled

from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import random_inputs

_HIDDEN, _WIDTH = 6, 5
_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


def _layer(kind: str, direction: str, *, states: bool = False) -> ModelProto:
    """`x [steps, batch, 5]`, and the first states, to all results."""
    b = GraphBuilder("layer", seed=0, opset=14)
    count = 2 if direction == "bidirectional" else 1
    rows = _GATES[kind] * _HIDDEN
    x = b.input("x", ["steps", "batch", _WIDTH])
    weights = [b.normal((count, rows, width), 0.4) for width in (_WIDTH, _HIDDEN)]
    names = ["h", "c"][: 2 if kind == "LSTM" else 1] if states else []
    firsts = [b.input(name, [count, "batch", _HIDDEN]) for name in names]
    results = b.ops(
        kind,
        *(x, *weights, b.normal((count, 2 * rows), 0.1), "", *firsts),
        outputs=3 if kind == "LSTM" else 2,
        hidden_size=_HIDDEN,
        direction=direction,
    )
    for number, result in enumerate(results):
        b.output(result, f"y{number}", [None] * (3 if number else 4))
    return b.build()


def _sizes(*pairs: tuple[int, int]) -> list[Sizes]:
    return [{"steps": steps, "batch": batch} for steps, batch in pairs]


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_layer_is_one_program(kind: str, direction: str) -> None:
    states = direction != "reverse"
    sizes = _sizes((5, 3), (1, 1), (9, 1), (1, 4), (33, 2))
    check_one_program(_layer(kind, direction, states=states), sizes)


@pytest.mark.parametrize(("steps", "batch"), [(0, 2), (3, 0), (0, 0)])
def test_without_steps_the_states_stay(steps: int, batch: int) -> None:
    """ONNX Runtime crashes there."""
    model = _layer("LSTM", "forward", states=True)
    inputs = random_inputs(model, dims={"steps": steps, "batch": batch})
    with compiled(model) as executable:
        results = executable.run(inputs)
        assert executable.compiled_in == 0
    assert results["y0"].shape == (steps, 1, batch, _HIDDEN)
    assert np.array_equal(results["y1"], inputs["h"])
    assert np.array_equal(results["y2"], inputs["c"])
