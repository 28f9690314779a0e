"""Element-wise `relay` ops on the host against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from host_runner import Array, Network, check_on_host

from byoc_mlir.dialects.relay import elementwise as relay
from byoc_mlir.dialects.relay import logic, nn
from byoc_mlir.dialects.relay.element_types import relay_type

ARITHMETIC = (
    relay.AddOp,
    relay.SubtractOp,
    relay.MultiplyOp,
    relay.MaximumOp,
    relay.MinimumOp,
    logic.EqualOp,
    logic.NotEqualOp,
    logic.LessOp,
    logic.LessEqualOp,
    logic.GreaterOp,
    logic.GreaterEqualOp,
)
DIVISION = (relay.DivideOp, relay.ModOp, relay.FloorModOp)
BITS = (logic.BitwiseAndOp, logic.BitwiseOrOp, logic.BitwiseXorOp)
LOGIC = (logic.LogicalAndOp, logic.LogicalOrOp, logic.LogicalXorOp)
SHIFTS = (logic.LeftShiftOp, logic.RightShiftOp)
UNARY = (relay.NegativeOp, relay.AbsOp, relay.SignOp, nn.ReluOp)
ROUNDING = (relay.CeilOp, relay.FloorOp, relay.RoundOp)
SMOOTH = (
    relay.ExpOp,
    relay.TanhOp,
    relay.SigmoidOp,
    relay.ErfOp,
    relay.SinOp,
    relay.CosOp,
    relay.AtanOp,
    relay.SinhOp,
    relay.CoshOp,
    relay.AsinhOp,
)
ON_POSITIVE = (relay.LogOp, relay.SqrtOp, relay.RsqrtOp)
ON_UNIT = (relay.TanOp, relay.AsinOp, relay.AcosOp, relay.AtanhOp)

INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
FLOATS: tuple[Any, ...] = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)


def _normal(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    return (np.random.default_rng(seed).normal(size=shape) * 3).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic_broadcasts(dtype: Any) -> None:
    network = Network(_normal((2, 1, 5), dtype), _normal((3, 1), dtype, seed=1))
    x, y = network.args
    ops = [*ARITHMETIC, *DIVISION]
    epsilon = float(ml_dtypes.finfo(dtype).eps)
    check_on_host(network, *(network.add(op(x, y)) for op in ops), tolerance=4 * epsilon)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(dtype: Any) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(2)
    x = rng.integers(info.min, info.max, size=(4, 7), dtype=dtype, endpoint=True)
    y = rng.integers(info.min, info.max, size=(7,), dtype=dtype, endpoint=True)
    divisor = rng.integers(1, 9, size=(7,), dtype=dtype)
    counts = rng.integers(0, info.bits, size=(4, 7), dtype=dtype)
    small = rng.integers(0, 5, size=(7,), dtype=dtype)
    network = Network(x, y, divisor, counts, small)
    a, b, c, shift, power = network.args
    results = [network.add(op(a, b)) for op in (*ARITHMETIC, *BITS)]
    results += [network.add(op(a, c)) for op in DIVISION]
    results += [network.add(op(a, shift)) for op in SHIFTS if info.min == 0]
    results += [network.add(relay.PowerOp(a, power)), network.add(logic.BitwiseNotOp(a))]
    results += [network.add(op(a)) for op in (relay.AbsOp, relay.SignOp, nn.ReluOp)]
    results.append(network.add(relay.ClipOp(a, a_min=3.0, a_max=100.0)))
    check_on_host(network, *results)


def test_float_functions() -> None:
    for dtype, tolerance in ((np.float32, 1e-6), (np.float64, 1e-6)):
        rng = np.random.default_rng(3)
        positive = rng.uniform(0.1, 9, size=(3, 37)).astype(dtype)
        unit = rng.uniform(-0.95, 0.95, size=(3, 37)).astype(dtype)
        network = Network(_normal((3, 37), dtype), positive, unit)
        x, p, u = network.args
        results = [network.add(op(x)) for op in (*UNARY, *ROUNDING, *SMOOTH)]
        results += [network.add(op(p)) for op in ON_POSITIVE]
        results += [network.add(op(u)) for op in ON_UNIT]
        results.append(network.add(relay.PowerOp(p, x)))
        results.append(network.add(nn.LeakyReluOp(x, alpha=0.2)))
        results.append(network.add(nn.PreluOp(x, u)))
        results.append(network.add(relay.ClipOp(x, a_min=-1.0, a_max=2.5)))
        check_on_host(network, *results, tolerance=tolerance)


def test_nan_and_infinity() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0, 88.0], np.float32)
    network = Network(special, special[::-1].copy(), special[:, None].copy())
    x, y, column = network.args
    unary = (*UNARY, *ROUNDING, relay.ExpOp, relay.TanhOp, relay.SigmoidOp, logic.IsnanOp)
    results = [network.add(op(x)) for op in (*unary, logic.IsinfOp, relay.SqrtOp)]
    results += [network.add(op(x, y)) for op in ARITHMETIC]
    results += [network.add(op(column, x)) for op in (relay.MaximumOp, relay.MinimumOp)]
    results.append(network.add(relay.ClipOp(x, a_min=-1.0, a_max=1.0)))
    check_on_host(network, *results)


def test_logic_and_choice() -> None:
    rng = np.random.default_rng(4)
    network = Network(
        rng.random((3, 1)) > 0.5, rng.random((2, 3, 4)) > 0.5, _normal((4,), np.float32)
    )
    p, q, x = network.args
    results = [network.add(op(p, q)) for op in (*LOGIC, logic.EqualOp)]
    results.append(network.add(logic.LogicalNotOp(p)))
    results.append(
        network.add(relay.WhereOp(q, x, network.constant(np.array([[2.0]], np.float32))))
    )
    check_on_host(network, *results)


CASTS = (np.bool_, *INTEGERS, *FLOATS)


@pytest.mark.parametrize("source", CASTS)
def test_casts(source: Any) -> None:
    values = np.abs(_normal((5, 6), np.float32)) * 20
    network = Network(values.astype(source))
    (x,) = network.args
    targets = [dtype for dtype in CASTS if dtype is not source]
    results = [network.add(relay.CastOp(x, dtype=relay_type(np.dtype(t)))) for t in targets]
    check_on_host(network, *results)


def test_per_channel_ops() -> None:
    channels = [
        np.random.default_rng(n).uniform(0.5, 2, size=4).astype(np.float32) for n in range(4)
    ]
    network = Network(_normal((2, 4, 3, 3), np.float32), _normal((2, 5, 4), np.float32), *channels)
    x, last, gamma, beta, mean, var = network.args
    results = [
        network.add(nn.BatchNormOp(x, gamma, beta, mean, var, epsilon=1e-3)),
        network.add(nn.BiasAddOp(x, beta)),
        network.add(nn.BiasAddOp(last, beta, axis=-1)),
    ]
    check_on_host(network, *results)


def test_scalars_and_empty_tensors() -> None:
    network = Network(np.array(1.5, np.float32), np.zeros((0, 3), np.float32))
    scalar, empty = network.args
    results = [
        network.add(relay.AddOp(scalar, scalar)),
        network.add(relay.ExpOp(scalar)),
        network.add(relay.AddOp(empty, scalar)),
    ]
    check_on_host(network, *results)


@pytest.mark.parametrize("exponent", [2.0, 3.0, 4.0, -1.0, -2.0, -0.5, 0.3, 5.0])
def test_power_by_a_known_exponent(exponent: float) -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0, 0.1, 3e38], np.float32)
    network = Network(special, np.abs(_normal((5, 9), np.float32)))
    x, matrix = network.args
    same, wider = (
        network.constant(np.full(shape, exponent, np.float32)) for shape in ((), (5, 1, 9))
    )
    results = [network.add(relay.PowerOp(x, same)), network.add(relay.PowerOp(matrix, wider))]
    check_on_host(network, *results, tolerance=1e-6)
