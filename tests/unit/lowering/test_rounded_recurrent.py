"""Recurrent layers of `f32` whose weights are `bf16`, against their numpy semantics."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from host_runner import Array, Network, run_on_host
from xdsl.dialects.func import FuncOp

from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.dialects.relay.recurrent import DIRECTIONS, GruOp, LstmOp

STEPS = 7


def _numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _network(
    kind: str, batch: int, hidden: int, direction: str, *, linear: bool = False
) -> Network:
    gates, count = {"lstm": 4, "gru": 3}[kind], DIRECTIONS[direction]
    states = [_numbers(count, batch, hidden) for _ in range(2 if kind == "lstm" else 1)]
    network = Network(_numbers(STEPS, count, batch, gates * hidden), *states)
    data, *first = network.args
    weight = _numbers(count, hidden, gates * hidden) / np.sqrt(np.float32(hidden))
    rounded = network.constant(weight.astype(ml_dtypes.bfloat16))
    if kind == "lstm":
        network.add(LstmOp(data, rounded, *first, direction=direction))
    else:
        bias = network.constant(_numbers(count, gates * hidden))
        network.add(
            GruOp(data, rounded, bias, *first, direction=direction, linear_before_reset=linear)
        )
    return network


def _check(network: Network) -> None:
    """Checks a layer; rounding a tie of `f32` the other way may move a result by one `bf16`
    step."""
    last = network.function.body.block.last_op
    assert last is not None
    module = network.returning(*last.results)
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    wanted = evaluate(main, network.inputs)
    got: Sequence[Array] = run_on_host(module, network.inputs)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2**-8)
        assert np.sqrt(np.mean(np.square(one - other))) < 5e-4


@pytest.mark.values
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("batch", [1, 3, 6])
@pytest.mark.parametrize("hidden", [4, 48])
def test_lstm(hidden: int, batch: int, direction: str) -> None:
    _check(_network("lstm", batch, hidden, direction))


@pytest.mark.values
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("batch", [1, 6])
def test_gru(batch: int, direction: str, linear: bool) -> None:
    _check(_network("gru", batch, 32, direction, linear=linear))


@pytest.mark.parametrize(("kind", "hidden"), [("lstm", 7), ("gru", 7), ("gru", 24)])
def test_columns_that_fill_no_panel(kind: str, hidden: int) -> None:
    _check(_network(kind, 2, hidden, "forward"))
