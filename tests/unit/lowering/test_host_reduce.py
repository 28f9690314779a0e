"""Reductions, softmax, normalisations and matmuls on the host against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from host_runner import Array, Network, check_on_host

from byoc_mlir.dialects.relay import nn
from byoc_mlir.dialects.relay import reduce as relay

FOLDS = (relay.SumOp, relay.MeanOp, relay.ProdOp, relay.MaxOp, relay.MinOp)
AXES = ([0], [1], [2], [0, 2], [1, 2], [-1], [0, 1, 2], [])


def _uniform(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-1.5, 1.5, size=shape).astype(dtype)


@pytest.mark.parametrize("keepdims", [False, True])
def test_folds_over_all_kinds_of_axes(keepdims: bool) -> None:
    network = Network(_uniform((4, 5, 70)))
    (x,) = network.args
    results = [network.add(op(x, axis=axes, keepdims=keepdims)) for op in FOLDS for axes in AXES]
    check_on_host(network, *results)


def test_folds_of_other_types() -> None:
    rng = np.random.default_rng(1)
    half, brain = _uniform((6, 300), np.float16), _uniform((6, 300), ml_dtypes.bfloat16)
    network = Network(rng.integers(-9, 9, size=(6, 5), dtype=np.int32), half, brain)
    number, *halves = network.args
    results = [network.add(op(number, axis=[1])) for op in FOLDS if op is not relay.MeanOp]
    results += [network.add(op(x, axis=[1])) for op in (relay.SumOp, relay.MaxOp) for x in halves]
    check_on_host(network, *results, tolerance=1e-2)


def test_extrema_keep_nan() -> None:
    values = _uniform((4, 70))
    values[1, 3] = values[3, 69] = np.nan
    network = Network(values)
    (x,) = network.args
    results = [
        network.add(op(x, axis=[axis])) for op in (relay.MaxOp, relay.MinOp) for axis in (0, 1)
    ]
    check_on_host(network, *results)


@pytest.mark.parametrize("last", [False, True])
def test_positions_of_extrema(last: bool) -> None:
    rng = np.random.default_rng(2)
    network = Network(
        rng.integers(0, 4, size=(5, 6, 7)).astype(np.float32), rng.integers(0, 3, (9,))
    )
    x, numbers = network.args
    results = [
        network.add(op(x, axis=[axis], keepdims=keepdims, select_last_index=last))
        for op in (relay.ArgmaxOp, relay.ArgminOp)
        for axis in (0, 1, -1)
        for keepdims in (False, True)
    ]
    results.append(network.add(relay.ArgmaxOp(numbers, axis=[0], select_last_index=last)))
    check_on_host(network, *results)


@pytest.mark.parametrize("last", [False, True])
def test_positions_of_nan(last: bool) -> None:
    rng = np.random.default_rng(3)
    holes = rng.choice([-np.inf, -1, 0, 1, np.inf], size=(5, 6, 70)).astype(np.float32)
    holes[rng.random(holes.shape) < 0.2] = np.nan
    types = (np.float32, np.float16, ml_dtypes.bfloat16)
    lows = np.full((4, 9), -np.inf)
    network = Network(*(x.astype(type_) for x in (holes, lows) for type_ in types))
    results = [
        network.add(op(x, axis=[axis], select_last_index=last))
        for x in network.args
        for op in (relay.ArgmaxOp, relay.ArgminOp)
        for axis in (0, -1)
    ]
    check_on_host(network, *results)


def test_soft_maxima() -> None:
    network = Network(_uniform((3, 10, 4)) * 40, _uniform((2, 1000)))
    x, wide = network.args
    results = [
        network.add(op(x, axis=axis))
        for op in (relay.SoftmaxOp, relay.LogSoftmaxOp)
        for axis in (0, 1, -1)
    ]
    results += [network.add(relay.SoftmaxOp(wide)), network.add(relay.LogSoftmaxOp(wide))]
    check_on_host(network, *results)
    network = Network(_uniform((2, 9), np.float16))
    check_on_host(network, network.add(relay.SoftmaxOp(network.args[0])), tolerance=1e-3)


def test_normalisations() -> None:
    network = Network(_uniform((2, 7, 96)), _uniform((96,)), _uniform((7, 96), seed=3))
    x, vector, matrix = network.args
    results = [
        network.add(nn.LayerNormOp(x, vector, vector)),
        network.add(nn.LayerNormOp(x, matrix, matrix, axis=1, epsilon=1e-3)),
    ]
    image = network.constant(_uniform((2, 12, 5, 5)))
    for size, beta in ((5, 0.75), (4, 0.5), (3, 1.0), (3, 0.6)):
        results.append(network.add(nn.LrnOp(image, size=size, alpha=0.3, beta=beta, bias=2.0)))
    check_on_host(network, *results)


MATRICES = (
    ((5, 7), (7, 9), False, False),
    ((64, 130), (130, 67), False, False),
    ((7, 5), (7, 9), True, False),
    ((5, 7), (9, 7), False, True),
    ((33, 21), (45, 33), True, True),
    ((2, 1, 5, 7), (3, 7, 17), False, False),
    ((3, 48, 33), (48, 33), False, True),
    ((1, 40), (40, 100), False, False),
    ((40, 1), (1, 33), False, False),
)


def test_matrix_products() -> None:
    network = Network()
    results = [
        network.add(
            nn.MatmulOp(
                network.constant(_uniform(a)),
                network.constant(_uniform(b, seed=1)),
                transpose_a=turn_a,
                transpose_b=turn_b,
            )
        )
        for a, b, turn_a, turn_b in MATRICES
    ]
    check_on_host(network, *results)


def test_matrix_products_of_run_time_values() -> None:
    network = Network(_uniform((2, 19, 33)), _uniform((2, 33, 18), seed=1), _uniform((37, 33)))
    a, b, weight = network.args
    results = [network.add(nn.MatmulOp(a, b)), network.add(nn.DenseOp(a, weight))]
    results.append(network.add(nn.DenseOp(a, network.constant(_uniform((51, 33))))))
    check_on_host(network, *results)


def test_integer_and_half_products() -> None:
    rng = np.random.default_rng(4)
    numbers = rng.integers(-5, 5, size=(6, 8), dtype=np.int32)
    network = Network(numbers, _uniform((6, 8), np.float16), _uniform((5, 8), np.float64))
    number, half, double = network.args
    results = [network.add(nn.DenseOp(x, x)) for x in (number, half, double)]
    check_on_host(network, *results, tolerance=1e-3)


@pytest.mark.parametrize("rows", [1, 2])
def test_few_rows_meet_a_matrix(rows: int) -> None:
    """Checks that the matrix's rows are summed four at a time, or singly if they are no multiple of
    four.
    """
    network = Network(_uniform((rows, 77)), _uniform((24, 77), seed=1), _uniform((7, 77), seed=2))
    x, fours, odd = network.args
    results = [network.add(nn.DenseOp(x, weight)) for weight in (fours, odd)]
    check_on_host(network, *results, tolerance=1e-5)
