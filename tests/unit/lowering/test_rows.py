"""Ops that run row by row, in one kernel: softmax and normalisations of many rows."""

from __future__ import annotations

import numpy as np
import pytest
from host_runner import Array, Network, check_on_host

from byoc_mlir import compile as compile_model
from byoc_mlir.dialects.relay import nn
from byoc_mlir.dialects.relay import reduce as relay
from byoc_mlir.testing.networks.builder import GraphBuilder


def _rows(count: int, length: int) -> Array:
    return np.random.default_rng(count).uniform(-4, 4, (count, length)).astype(np.float32)


@pytest.mark.parametrize("length", [1, 5, 8, 13, 69, 128])
def test_rows_of_any_length(length: int) -> None:
    network = Network(_rows(48, length), _rows(1, length)[0])
    x, scale = network.args
    results = [network.add(op(x, axis=-1)) for op in (relay.SoftmaxOp, relay.LogSoftmaxOp)]
    results.append(network.add(nn.LayerNormOp(x, scale, scale)))
    results.append(network.add(relay.MeanOp(x, axis=[1])))
    check_on_host(network, *results)


def test_masked_rows() -> None:
    x = _rows(32, 37)
    x[::2, 5:] -= 10000
    x[1, 3:] = x[2] = -np.inf
    x[3, 4], x[4, 5] = np.nan, np.inf
    x[5, 1:] -= 100  # denormals
    network = Network(x)
    with np.errstate(invalid="ignore"):
        check_on_host(network, network.add(relay.SoftmaxOp(network.args[0], axis=-1)))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_whose_sizes_are_symbolic(threads: int) -> None:
    b = GraphBuilder("rows", seed=0)
    x = b.input("x", ["rows", 8, "length"])
    b.output(b.op("Softmax", x, axis=-1), "y", ["rows", 8, "length"])
    with compile_model(b.build(), threads=threads) as executable:
        for rows, length in ((4, 13), (1, 1), (300, 129), (0, 4), (7, 0)):
            values = _rows(8 * rows, length).reshape(rows, 8, length)
            (found,) = executable.run({"x": values}).values()
            weights = np.exp(values.astype(np.float64))
            np.testing.assert_allclose(found, weights / weights.sum(-1, keepdims=True), 1e-6)
