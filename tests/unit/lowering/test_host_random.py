"""Random bits from native code: equal to the evaluator's."""

from __future__ import annotations

import numpy as np
import pytest
from host_runner import Network, check_on_host

from byoc_mlir.dialects.relay import random as relay


@pytest.mark.parametrize("size", [1, 1000])
def test_bits(size: int) -> None:
    network = Network(np.array([0xDEADBEEF, 0x12345678], np.uint32))
    results = [
        network.add(relay.RandomBitsOp(network.args[0], size=size, stream=stream))
        for stream in (0, 3)
    ]
    check_on_host(network, *results)
