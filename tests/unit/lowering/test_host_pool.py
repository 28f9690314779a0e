"""Max pools, on the host against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from host_runner import Network, check_on_host

from byoc_mlir.dialects.relay import pool


@pytest.mark.pairs
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint8])
@pytest.mark.parametrize("column_major", [False, True])
@pytest.mark.parametrize(
    ("op", "sizes"),
    [
        (pool.MaxPoolWithArgmax1DOp, (11,)),
        (pool.MaxPoolWithArgmax2DOp, (7, 9)),
        (pool.MaxPoolWithArgmax3DOp, (5, 4, 6)),
    ],
)
def test_places_of_maxima(
    op: type[pool.MaxPoolWithArgmaxOp], sizes: tuple[int, ...], column_major: bool, dtype: Any
) -> None:
    data = np.random.default_rng(5).integers(0, 9, (2, 3, *sizes)).astype(dtype)
    rank = len(sizes)
    network = Network(data)
    pooled = op(
        *network.args,
        pool_size=[3, 2, 3][:rank],
        strides=[2, 1, 2][:rank],
        padding=[1, 0, 1][:rank] + [0, 1, 1][:rank],
        dilation=[1, 2, 1][:rank],
        column_major=column_major,
    )
    network.add(pooled)
    check_on_host(network, pooled.output, pooled.indices)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_maxima_of_special_16_bit_floats(dtype: Any) -> None:
    special = np.array([np.inf, -np.inf, 0, -0.0, 6e-8, -6e-8, 1, -1, 65504, -65504], dtype)
    nans = np.array([0x7FFF, 0x7FC1, -1, -63], np.int16).view(dtype)
    data = np.random.default_rng(3).choice(np.append(special, nans), (1, 4, 40))
    network = Network(data)
    pooled = pool.MaxPool1DOp(
        *network.args, pool_size=[2], strides=[1], padding=[1, 1], dilation=[1]
    )
    network.add(pooled)
    check_on_host(network, pooled.output)
