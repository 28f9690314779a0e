"""Gathers, scatters, cumulative sums and top-k on the host, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from host_runner import Array, Network, check_on_host
from xdsl.ir import OpResult

from byoc_mlir.dialects.relay import index as relay
from byoc_mlir.dialects.relay import transform


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _numbers(*shape: int) -> Array:
    return _rng().normal(size=shape).astype(np.float32)


def _places(size: int, *shape: int) -> Array:
    return _rng().integers(-size, size, shape)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take(axis: int) -> None:
    network = Network(_numbers(4, 5, 6), _places(4, 3, 2), np.array(-2, np.int32))
    data, places, one = network.args
    results = [
        network.add(relay.TakeOp(data, places, axis=axis)),
        network.add(relay.TakeOp(data, one, axis=axis)),
    ]
    check_on_host(network, *results)


def test_take_of_a_slice_on_all_threads() -> None:
    network = Network(_numbers(40, 600), _places(30, 200))
    data, places = network.args
    part = network.add(transform.StridedSliceOp(data, begin=[5, 0], end=[35, 600], strides=[1, 1]))
    check_on_host(network, network.add(relay.TakeOp(part, places, axis=0)))


def test_gathers() -> None:
    network = Network(_numbers(4, 5, 6), _places(5, 4, 3, 6), _places(4, 2, 3, 2), _places(5, 4, 2))
    data, along, rows, batched = network.args
    batched = network.add(transform.ReshapeOp(batched, newshape=[4, 2, 1]))
    results = [
        network.add(relay.GatherOp(data, along, axis=1)),
        network.add(relay.GatherNdOp(data, rows)),
        network.add(relay.GatherNdOp(data, batched, batch_dims=1)),
    ]
    check_on_host(network, *results)


@pytest.mark.parametrize("reduction", relay.REDUCTIONS)
def test_scatters(reduction: str) -> None:
    whole = np.stack([_rng().permutation(5)[:3] for _ in range(8)]).reshape(4, 2, 3)
    network = Network(
        _numbers(4, 2, 5), whole, _numbers(4, 2, 3), _places(4, 7, 1), _numbers(7, 2, 5)
    )
    data, along, updates, rows, slices = network.args
    results = [
        network.add(relay.ScatterElementsOp(data, along, updates, axis=2, reduction=reduction)),
        network.add(relay.ScatterNdOp(data, rows, slices, reduction=reduction)),
    ]
    check_on_host(network, *results)


def test_slices_at_computed_places() -> None:
    network = Network(
        _numbers(3, 6, 2, 4),
        _numbers(3, 2, 2, 4),
        _numbers(3, 6, 2, 1),
        np.array([4, -3, 9], np.int64),
    )
    data, rows, columns, starts = network.args
    first = network.add(relay.UpdateSliceOp(data, rows, starts))
    second = network.add(relay.UpdateSliceOp(first, columns, starts, axis=3))
    check_on_host(network, second, network.add(relay.UpdateSliceOp(data, columns, starts, axis=-1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
@pytest.mark.parametrize("exclusive", [False, True])
def test_running_sums_and_products(dtype: type[np.generic], exclusive: bool) -> None:
    network = Network((_rng().random((3, 8, 4)) * 3).astype(dtype))
    (data,) = network.args
    results = [
        network.add(relay.CumsumOp(data, axis=1, exclusive=exclusive)),
        network.add(relay.CumsumOp(data, axis=-1, exclusive=exclusive, reverse=True)),
        network.add(relay.CumprodOp(data, axis=0, exclusive=exclusive)),
    ]
    check_on_host(network, *results, tolerance=2e-3 if dtype is np.float16 else 1e-5)


@pytest.mark.parametrize("k", [0, 1, 5, 100, 137])
@pytest.mark.parametrize("ascending", [False, True])
def test_topk_keeps_the_order_of_equal_values(k: int, ascending: bool) -> None:
    data = _rng().integers(0, 40, (2, 137, 3)).astype(np.float32)
    network = Network(data, data.astype(np.uint8))
    results = [
        value
        for arg in network.args
        for value in _both(network, relay.TopkOp(arg, k=k, axis=1, is_ascend=ascending))
    ]
    check_on_host(network, *results)


def _both(network: Network, op: relay.TopkOp) -> list[OpResult]:
    network.add(op)
    return [op.values, op.indices]


def test_topk_puts_nan_first_and_infinity_next() -> None:
    data = np.array([[1, np.inf, np.nan, -np.inf, 3, np.nan]], np.float32)
    network = Network(data)
    (values, places) = _both(network, relay.TopkOp(network.args[0], k=6, axis=1))
    check_on_host(network, values, places)
