"""Resizing on the host, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from host_runner import Array, Network, check_on_host

from byoc_mlir.dialects.relay import image
from byoc_mlir.dialects.relay.resampling import COORDINATES, METHODS, ROUNDINGS


def _numbers(*shape: int) -> Array:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32) * 60


def _resize(network: Network, size: list[int], **properties: Any) -> image.ResizeOp:
    (data,) = network.args
    shape = network.inputs[0].shape
    scales = [new / old for new, old in zip(size, shape, strict=True)]
    roi = image.floats_attribute([0, 0, 0.1, -0.2, 1, 1, 0.8, 1.1])
    return image.ResizeOp(
        data, size=size, scales=image.floats_attribute(scales), roi=roi, **properties
    )


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("method", METHODS)
def test_larger_and_smaller(coordinates: str, method: str) -> None:
    network = Network(_numbers(2, 3, 7, 10))
    how = {"method": method, "coordinate_transformation_mode": coordinates}
    results = [
        network.add(_resize(network, size, **how, extrapolation_value=5.0))
        for size in ([2, 3, 15, 13], [2, 3, 4, 10], [2, 3, 7, 3])
    ]
    check_on_host(network, *results)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.bool_, np.float16])
def test_nearest_moves_elements_of_every_type(rounding: str, dtype: type[np.generic]) -> None:
    network = Network((_numbers(1, 2, 5, 4) > 20).astype(dtype))
    how = {"method": "nearest", "rounding_method": rounding}
    check_on_host(network, network.add(_resize(network, [1, 2, 10, 6], **how)))


@pytest.mark.parametrize("method", ["linear", "cubic"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64])
def test_antialias_and_rounding(method: str, dtype: type[np.generic]) -> None:
    network = Network(np.abs(_numbers(1, 2, 24, 33)).clip(0, 255).astype(dtype))
    results = [
        network.add(_resize(network, [1, 2, 3, 10], method=method, antialias=True)),
        network.add(_resize(network, [1, 2, 30, 40], method=method, exclude_outside=True)),
    ]
    check_on_host(network, *results, tolerance=1e-6)


def test_large_images_on_all_threads() -> None:
    network = Network(_numbers(1, 3, 120, 160))
    check_on_host(network, network.add(_resize(network, [1, 3, 240, 320], method="linear")))
