"""Interpreter's recurrent layers: against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from agreement import check_node, floats, run_interpreted
from helpers.models import node_model

from byoc_mlir.interpreter import lstm
from byoc_mlir.interpreter.model import InterpretedModel
from byoc_mlir.tensors import Array

GATES = {"LSTM": 4, "GRU": 3}


def _operands(op_type: str, sizes: tuple[int, int, int, int], directions: int) -> list[Any]:
    """Returns inputs, weights, biases, no lengths, and initial states."""
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
    """Checks the layout against the other one, since ONNX Runtime does not have it."""
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
        op_type,
        operands,
        outputs=outputs,
        hidden_size=5,
        direction="bidirectional",
        layout=layout,
    )
    return run_interpreted(model, feeds)


@pytest.mark.parametrize("sizes", [(7, 1, 5, 9), (7, 3, 30, 33), (3, 17, 40, 65), (2, 40, 128, 96)])
@pytest.mark.parametrize("op_type", sorted(GATES))
def test_sizes_that_fill_no_vectors(op_type: str, sizes: tuple[int, int, int, int]) -> None:
    outputs = 3 if op_type == "LSTM" else 2
    check_node(
        *(op_type, *_operands(op_type, sizes, 2)),
        outputs=outputs,
        hidden_size=sizes[3],
        direction="bidirectional",
    )


@pytest.mark.parametrize("op_type", sorted(GATES))
@pytest.mark.parametrize("sizes", [(0, 3, 2, 5), (6, 0, 2, 5), (6, 3, 0, 5), (6, 3, 2, 0)])
def test_nothing_is_left_to_the_program(op_type: str, sizes: tuple[int, int, int, int]) -> None:
    model, feeds = node_model(op_type, _operands(op_type, sizes, 1), hidden_size=5)
    with pytest.raises(NotImplementedError):
        run_interpreted(model, feeds)


@pytest.mark.parametrize("place", range(1, 7))
def test_operands_that_do_not_fit(place: int) -> None:
    """Checks that short operands are refused, since oneDNN would read past their end."""
    operands = _operands("LSTM", (6, 3, 2, 5), 2)
    operands[4] = np.full(3, 6, np.int32)
    model, feeds = node_model("LSTM", operands, hidden_size=5, direction="bidirectional")
    short = {**feeds, f"x{place}": feeds[f"x{place}"][..., :-1]}
    with pytest.raises(NotImplementedError):
        run_interpreted(model, short)
    if place != 4:
        wide = {**feeds, f"x{place}": feeds[f"x{place}"].astype(np.float64)}
        with pytest.raises(NotImplementedError):
            run_interpreted(model, wide)


def _with_constants(
    operands: Sequence[Any], constant: Sequence[int]
) -> tuple[InterpretedModel, Mapping[str, Array]]:
    """Returns a bidirectional LSTM with some constant operands, and the other operands."""
    model, feeds = node_model(
        "LSTM", operands, outputs=3, hidden_size=operands[2].shape[-1], direction="bidirectional"
    )
    names = {f"x{place}" for place in constant}
    tensors = {name: value for name, value in feeds.items() if name in names}
    others = {name: value for name, value in feeds.items() if name not in names}
    return InterpretedModel(model, tensors, threads=1), others


@pytest.mark.parametrize("constant", [(1, 2, 3), (1, 2), (2, 3)])
def test_constant_weights(constant: tuple[int, ...]) -> None:
    """Checks runs of several sizes, and inputs in place of constants."""
    for steps, rows in ((7, 1), (3, 4), (7, 1), (2, 40)):
        operands = _operands("LSTM", (steps, rows, 8, 33), 2)
        whole, feeds = _with_constants(operands, ())
        layer, others = _with_constants(operands, constant)
        for given in (others, {**others, "x2": -feeds["x2"]}):
            _assert_same(layer.run(given), whole.run({**feeds, **given}))


def test_one_layer_for_all_sizes() -> None:
    """Checks that weights are packed once, though the primitives that packed them are freed."""
    layer, _ = _with_constants(_operands("LSTM", (1, 1, 8, 33), 2), (1, 2, 3))
    for steps, rows in ((1, 1), (3, 4), (7, 1), (2, 40), (1, 1)):
        whole, feeds = _with_constants(_operands("LSTM", (steps, rows, 8, 33), 2), ())
        got = layer.run({name: feeds[name] for name in ("x0", "x5", "x6")})
        _assert_same(got, whole.run(feeds))
        lstm.made.cache_clear()


def test_threads_at_once() -> None:
    """Checks that each run has its own memory."""
    layer, _ = _with_constants(_operands("LSTM", (1, 1, 8, 33), 2), (1, 2, 3))
    whole = [_with_constants(_operands("LSTM", (9, rows, 8, 33), 2), ()) for rows in (1, 2, 3)]
    wanted = [model.run(feeds) for model, feeds in whole]
    given = [{name: feeds[name] for name in ("x0", "x5", "x6")} for _, feeds in whole]
    with ThreadPoolExecutor(4) as pool:
        for want, got in zip(wanted * 20, pool.map(layer.run, given * 20), strict=True):
            _assert_same(got, want)


def _assert_same(got: Mapping[str, Array], want: Mapping[str, Array]) -> None:
    assert got.keys() == want.keys()
    for name in got:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-5, atol=1e-6)


def test_without_code_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that NumPy's results equal the primitive's."""
    operands = _operands("LSTM", (6, 3, 2, 5), 2)
    by_primitive = _run("LSTM", operands, 3, 0)
    monkeypatch.setattr(lstm.LstmPrimitive, "is_reference", True)
    lstm.made.cache_clear()
    _assert_same(_run("LSTM", operands, 3, 0), by_primitive)
    lstm.made.cache_clear()


@pytest.mark.parametrize("lengths", [[0, 6, 1], [7, 1, 1], [3, 3]])
def test_lengths_that_are_none(lengths: list[int]) -> None:
    operands = _operands("LSTM", (6, 3, 2, 5), 1)
    operands[4] = np.array(lengths, np.int32)
    model, feeds = node_model("LSTM", operands, hidden_size=5)
    with pytest.raises(NotImplementedError, match="lengths"):
        run_interpreted(model, feeds)


def test_operands_stay_as_they_are() -> None:
    operands = _operands("GRU", (6, 3, 2, 5), 1)
    before: list[Any] = [None if each is None else each.copy() for each in operands]
    for reset in (0, 1):
        model, feeds = node_model("GRU", operands, hidden_size=5, linear_before_reset=reset)
        run_interpreted(model, feeds)
    for one, two in zip(operands, before, strict=True):
        assert one is None or np.array_equal(one, two)
