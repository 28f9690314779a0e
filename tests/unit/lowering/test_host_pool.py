"""Max pools with indices, on the host against numpy."""

from __future__ import annotations

from typing import Any

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
