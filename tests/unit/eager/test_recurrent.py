"""Our recurrent layers against ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from agreement import check_node, floats, node_model, run_eagerly

from byoc_mlir.tensors import Array

GATES = {"LSTM": 4, "GRU": 3}


def _operands(op_type: str, sizes: tuple[int, int, int, int], directions: int) -> list[Any]:
    """Inputs, weights, biases, no lengths, and initial states."""
    steps, rows, features, hidden = sizes
    gates = GATES[op_type] * hidden
    states = [0.5 * floats(directions, rows, hidden, seed=seed) for seed in (3, 4)]
    return [
        floats(steps, rows, features),
        0.3 * floats(directions, gates, features, seed=1),
        0.3 * floats(directions, gates, hidden, seed=2),
        floats(directions, 2 * gates, seed=5),
        None,
        *states[: 2 if op_type == "LSTM" else 1],
    ]


@pytest.mark.parametrize("op_type", sorted(GATES))
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (5, 1, 3, 4), (6, 3, 2, 5), (20, 4, 8, 16)])
@pytest.mark.parametrize("given", [3, 4, 7])
def test_layers(op_type: str, direction: str, sizes: tuple[int, int, int, int], given: int) -> None:
    operands = _operands(op_type, sizes, 2 if direction == "bidirectional" else 1)
    outputs = 3 if op_type == "LSTM" else 2
    attributes: dict[str, Any] = {"hidden_size": sizes[3], "direction": direction}
    resets = [{}] if op_type == "LSTM" else [{"linear_before_reset": each} for each in (0, 1)]
    for more in resets:
        check_node(op_type, *operands[:given], outputs=outputs, **attributes, **more)


@pytest.mark.parametrize("op_type", sorted(GATES))
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [[6, 6, 6], [1, 6, 3], [2, 1, 4]])
def test_lengths(op_type: str, direction: str, lengths: list[int]) -> None:
    operands = _operands(op_type, (6, 3, 2, 5), 2 if direction == "bidirectional" else 1)
    operands[4] = np.array(lengths, np.int32)
    outputs = 3 if op_type == "LSTM" else 2
    check_node(op_type, *operands, outputs=outputs, hidden_size=5, direction=direction)


@pytest.mark.parametrize("op_type", sorted(GATES))
def test_rows_first(op_type: str) -> None:
    """ONNX Runtime has no such layout: the same as with other axes."""
    operands = _operands(op_type, (6, 3, 2, 5), 2)
    outputs = 3 if op_type == "LSTM" else 2
    steps_first = _run(op_type, operands, outputs, 0)
    moved = [operand if number in (1, 2, 3, 4) else operand.swapaxes(0, 1).copy()
             for number, operand in enumerate(operands)]  # fmt: skip
    rows_first = _run(op_type, moved, outputs, 1)
    assert np.array_equal(rows_first["y0"], steps_first["y0"].transpose(2, 0, 1, 3))
    for name in list(steps_first)[1:]:
        assert np.array_equal(rows_first[name], steps_first[name].swapaxes(0, 1))


def _run(op_type: str, operands: list[Any], outputs: int, layout: int) -> Mapping[str, Array]:
    model, feeds = node_model(
        op_type, operands, 17, outputs, hidden_size=5, direction="bidirectional", layout=layout
    )
    return run_eagerly(model, feeds)


@pytest.mark.parametrize("lengths", [[0, 6, 1], [7, 1, 1], [3, 3]])
def test_lengths_that_are_none(lengths: list[int]) -> None:
    operands = _operands("LSTM", (6, 3, 2, 5), 1)
    operands[4] = np.array(lengths, np.int32)
    model, feeds = node_model("LSTM", operands, hidden_size=5)
    with pytest.raises(NotImplementedError, match="lengths"):
        run_eagerly(model, feeds)


def test_operands_stay_as_they_are() -> None:
    operands = _operands("GRU", (6, 3, 2, 5), 1)
    before: list[Any] = [None if each is None else each.copy() for each in operands]
    for reset in (0, 1):
        model, feeds = node_model("GRU", operands, hidden_size=5, linear_before_reset=reset)
        run_eagerly(model, feeds)
    for one, two in zip(operands, before, strict=True):
        assert one is None or np.array_equal(one, two)
