"""Host compiler on drawn shapes, and properties of every buffer plan."""

from __future__ import annotations

from typing import Any

import numpy as np
from host_runner import Array, Network, assert_close, check_on_host, run_on_host
from hypothesis import given, settings
from hypothesis import strategies as st

from byoc_mlir.abi import ARENA_ALIGNMENT
from byoc_mlir.dialects.relay import elementwise, nn, window
from byoc_mlir.dialects.relay import reduce as folds
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.kernels.arena import BufferRequest, plan_offsets

_SIZES = st.integers(1, 40)
_SHAPES = st.lists(st.integers(1, 5), max_size=4)


def _numbers(shape: list[int], seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@st.composite
def _broadcast_pair(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    full = draw(_SHAPES)
    sides: list[list[int]] = []
    for _ in range(2):
        kept = full[draw(st.integers(0, len(full))) :]
        sides.append([size if draw(st.booleans()) else 1 for size in kept])
    return sides[0], sides[1]


# one module for many drawn shapes: compiling is what takes the time
@settings(max_examples=5)
@given(st.lists(_broadcast_pair(), min_size=8, max_size=12))
def test_broadcasting(pairs: list[tuple[list[int], list[int]]]) -> None:
    arrays = [_numbers(shape, n) for n, pair in enumerate(pairs) for shape in pair]
    network = Network(*arrays)
    results = [
        network.add(elementwise.SubtractOp(network.args[n], network.args[n + 1]))
        for n in range(0, len(arrays), 2)
    ]
    check_on_host(network, *results)


@settings(max_examples=4)
@given(st.lists(st.tuples(_SIZES, _SIZES, st.integers(1, 600)), min_size=4, max_size=6))
def test_products_of_any_size(sizes: list[tuple[int, int, int]]) -> None:
    network = Network()
    results = []
    for m, n, k in sizes:
        a, b = (network.constant(_numbers(shape, 0)) for shape in ([m, k], [k, n]))
        results.append(network.add(nn.MatmulOp(a, b)))
    check_on_host(network, *results)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 30), st.integers(0, 8))))
def test_plans_keep_what_is_alive_apart(drawn: list[tuple[int, int, int]]) -> None:
    requests = [BufferRequest(size, first, first + length) for size, first, length in drawn]
    offsets, total = plan_offsets(requests)
    assert all(offset % ARENA_ALIGNMENT == 0 for offset in offsets)
    for n, (one, start) in enumerate(zip(requests, offsets, strict=True)):
        assert start + one.size <= total
        for other, other_start in zip(requests[:n], offsets[:n], strict=True):
            together = one.first <= other.last and other.first <= one.last
            apart = start + one.size <= other_start or other_start + other.size <= start
            assert not together or apart or 0 in (one.size, other.size)


def test_plans_reuse_memory() -> None:
    chain = [BufferRequest(640, n, n + 1) for n in range(10)]
    assert plan_offsets(chain)[1] == 2 * 640


def test_threads_compute_the_same() -> None:
    def build() -> Network:
        network = Network(_numbers([1, 24, 30, 30], 0), _numbers([300, 260], 1))
        return network

    inputs = build().inputs
    modules = []
    network = build()
    for _ in range(2):
        network = build()
        image, matrix = network.args
        weight = network.constant(_numbers([32, 24, 3, 3], 2))
        options: dict[str, Any] = {"strides": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1]}
        convolved = network.add(window.Conv2DOp(image, weight, **options))
        outputs = [
            network.add(nn.ReluOp(convolved)),
            network.add(nn.DenseOp(matrix, matrix)),
            network.add(elementwise.ExpOp(matrix)),
            network.add(folds.SoftmaxOp(matrix)),
            network.add(folds.SumOp(matrix, axis=[0])),
            network.add(folds.MaxOp(matrix, axis=[1])),
        ]
        modules.append(network.returning(*outputs))
    expected = evaluate(network.function, inputs)
    for module, threads in zip(modules, (False, True), strict=True):
        found = run_on_host(module, inputs, threads=threads)
        for want, got in zip(expected, found, strict=True):
            assert_close(got, want, 1e-5, f"threads={threads}")
