"""Convolutions and pools on the host against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from host_runner import Array, Network, check_on_host

from byoc_mlir.dialects.relay import pool
from byoc_mlir.dialects.relay import window as relay


def _normal(shape: tuple[int, ...], seed: int = 0, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# data, weight, strides, padding, dilation, groups
CONVOLUTIONS = (
    ((1, 3, 16, 17), (8, 3, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ((2, 16, 14, 14), (24, 16, 3, 3), (2, 2), (0, 0, 1, 1), (1, 1), 1),
    ((1, 3, 21, 19), (7, 3, 7, 7), (2, 2), (3, 3, 3, 3), (1, 1), 1),
    ((1, 32, 7, 7), (50, 32, 1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((1, 8, 12, 12), (6, 8, 1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    ((1, 4, 15, 15), (5, 4, 3, 3), (1, 1), (2, 2, 2, 2), (2, 2), 1),
    ((1, 12, 10, 10), (12, 1, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 12),
    ((2, 12, 11, 11), (24, 1, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 12),
    ((1, 12, 9, 9), (18, 4, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
    ((1, 40, 5, 5), (64, 40, 5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1),
    ((1, 300, 6, 6), (13, 300, 3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ((1, 1, 30, 60), (6, 1, 5, 3), (1, 1), (2, 1, 2, 1), (1, 1), 1),
    ((2, 24, 30, 29), (24, 1, 3, 3), (1, 1), (2, 0, 1, 3), (1, 1), 24),
    ((1, 50, 25, 20), (14, 50, 3, 2), (1, 1), (0, 1, 0, 0), (1, 2), 1),
)


def test_convolutions() -> None:
    network = Network(*(_normal(case[0]) for case in CONVOLUTIONS))
    results = [
        network.add(
            relay.Conv2DOp(
                x,
                network.constant(_normal(weight, seed=1)),
                strides=strides,
                padding=padding,
                dilation=dilation,
                groups=groups,
            )
        )
        for x, (_, weight, strides, padding, dilation, groups) in zip(
            network.args, CONVOLUTIONS, strict=True
        )
    ]
    check_on_host(network, *results)


def test_convolutions_with_run_time_weights() -> None:
    network = Network(_normal((1, 5, 9, 9)), _normal((7, 5, 3, 3)), _normal((10, 1, 3, 3)))
    x, full, depthwise = network.args
    options: dict[str, Any] = {"strides": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1]}
    results = [
        network.add(relay.Conv2DOp(x, full, **options)),
        network.add(relay.Conv2DOp(x, depthwise, **options, groups=5)),
    ]
    check_on_host(network, *results)


def test_other_ranks_and_types() -> None:
    line: dict[str, Any] = dict(strides=[2], padding=[2, 1], dilation=[2])
    volume: dict[str, Any] = dict(strides=[1, 2, 1], padding=[1, 0, 1, 1, 1, 0], dilation=[1, 1, 2])
    network = Network(
        _normal((2, 4, 30)), _normal((1, 3, 6, 7, 8)), _normal((1, 4, 9), 0, np.float16)
    )
    x, y, half = network.args
    results = [
        network.add(relay.Conv1DOp(x, network.constant(_normal((6, 4, 5))), **line)),
        network.add(relay.Conv3DOp(y, network.constant(_normal((4, 3, 3, 2, 3))), **volume)),
        network.add(
            relay.Conv1DOp(half, network.constant(_normal((3, 4, 3), 1, np.float16)), **line)
        ),
    ]
    check_on_host(network, *results, tolerance=2e-3)


TRANSPOSED = (
    ((1, 4, 5, 6), (4, 3, 2, 2), (2, 2), (0, 0, 0, 0), (1, 1), (0, 0), 1),
    ((2, 6, 7, 7), (6, 5, 3, 3), (2, 2), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    ((1, 6, 5, 5), (6, 2, 3, 3), (1, 1), (1, 0, 1, 2), (1, 1), (0, 0), 3),
    ((1, 4, 5, 5), (4, 4, 3, 3), (3, 2), (0, 0, 0, 0), (2, 2), (1, 0), 1),
    ((1, 2, 6, 6), (2, 2, 1, 1), (1, 1), (1, 1, 1, 1), (1, 1), (0, 0), 1),
)


def test_transposed_convolutions() -> None:
    network = Network(*(_normal(case[0]) for case in TRANSPOSED))
    results = [
        network.add(
            relay.Conv2DTransposeOp(
                x,
                network.constant(_normal(weight, seed=1)),
                strides=strides,
                padding=padding,
                dilation=dilation,
                output_padding=extra,
                groups=groups,
            )
        )
        for x, (_, weight, strides, padding, dilation, extra, groups) in zip(
            network.args, TRANSPOSED, strict=True
        )
    ]
    check_on_host(network, *results)


POOLS = (
    ((3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False),
    ((3, 2), (2, 1), (0, 1, 1, 0), (1, 2), False),
    ((3, 3), (2, 2), (0, 0, 0, 0), (1, 1), True),
    ((2, 2), (2, 2), (1, 1, 1, 1), (1, 1), True),
)


@pytest.mark.parametrize("shape", [(2, 5, 15, 14), (1, 70, 8, 8)])
def test_pools(shape: tuple[int, ...]) -> None:
    network = Network(_normal(shape) - 2)
    (x,) = network.args
    results = []
    for kernel, strides, padding, dilation, ceil in POOLS:
        options = {
            "pool_size": kernel,
            "strides": strides,
            "padding": padding,
            "dilation": dilation,
            "ceil_mode": ceil,
        }
        results.append(network.add(pool.MaxPool2DOp(x, **options)))
        results += [
            network.add(pool.AvgPool2DOp(x, **options, count_include_pad=counted))
            for counted in (False, True)
        ]
    results += [network.add(op(x)) for op in (pool.GlobalMaxPool2DOp, pool.GlobalAvgPool2DOp)]
    check_on_host(network, *results)


def test_pools_of_other_ranks_and_types() -> None:
    numbers = np.random.default_rng(1).integers(-99, 99, (1, 3, 9, 9)).astype(np.int8)
    network = Network(
        *(_normal((2, 3, 20)), _normal((1, 2, 6, 6, 6)), numbers, numbers.view(np.uint8)),
        _normal((1, 3, 7), dtype=np.float16),
    )
    line, volume, signed, unsigned, half = network.args
    one: dict[str, Any] = dict(pool_size=[3], strides=[2], padding=[1, 1], dilation=[1])
    three: dict[str, Any] = dict(
        pool_size=[2] * 3, strides=[2] * 3, padding=[0] * 6, dilation=[1] * 3
    )
    two: dict[str, Any] = dict(pool_size=[3, 3], strides=[2, 2], padding=[1] * 4, dilation=[1, 1])
    long: dict[str, Any] = dict(pool_size=[18], strides=[1], padding=[2, 3], dilation=[1])
    results = [
        network.add(pool.MaxPool1DOp(line, **one)),
        network.add(pool.AvgPool1DOp(line, **one)),
        network.add(pool.MaxPool1DOp(line, **long)),
        network.add(pool.AvgPool1DOp(line, **long)),
        network.add(pool.MaxPool3DOp(volume, **three)),
        network.add(pool.AvgPool3DOp(volume, **three)),
        network.add(pool.GlobalAvgPool1DOp(line)),
        network.add(pool.GlobalMaxPool3DOp(volume)),
        network.add(pool.GlobalMaxPool1DOp(half)),
        network.add(pool.MaxPool2DOp(signed, **two)),
        network.add(pool.MaxPool2DOp(unsigned, **two)),
    ]
    check_on_host(network, *results)
