"""Models compiled for aarch64 run under `qemu-user`, near to what this machine computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from programs import differences

from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.networks.encoder import encoder

NEAR = 1e-5


@pytest.mark.parametrize("threads", [1, 2])
def test_mnist(tmp_path: Path, threads: int) -> None:
    x = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(np.float32)
    found = differences(tmp_path, NETWORKS["mnist"](), {"image": x}, threads=threads)
    assert max(found.values()) < NEAR


@pytest.mark.parametrize("sizes", [(), (2, 7)], ids=["compiled in", "arguments"])
def test_an_encoder(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    inputs = {
        "input_ids": generator.integers(0, 100, (2, 7)),
        "attention_mask": (generator.random((2, 7)) < 0.8).astype(np.int64),
    }
    found = differences(tmp_path, encoder(), inputs, sizes=sizes)
    assert max(found.values()) < NEAR
