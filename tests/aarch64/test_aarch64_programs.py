"""Models compiled for aarch64: their outputs under `qemu-user` are close to this machine's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from programs import TRIPLE, differences

import byoc_mlir
from byoc_mlir.errors import IncompatibleArtifactError
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.networks.encoder import encoder

NEAR = 1e-5


@pytest.mark.parametrize(("threads", "file"), [(1, "model.o"), (2, "model.o"), (2, "model.so")])
def test_mnist(tmp_path: Path, threads: int, file: str) -> None:
    x = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(np.float32)
    model = NETWORKS["mnist"]()
    found = differences(tmp_path, model, {"image": x}, threads=threads, file=file)
    assert max(found.values()) < NEAR


def test_a_shared_object_is_not_loaded_here(tmp_path: Path) -> None:
    byoc_mlir.cross_compile(NETWORKS["mlp3"](), tmp_path / "model.so", TRIPLE)
    with pytest.raises(IncompatibleArtifactError, match=r"is for aarch64, this machine is"):
        byoc_mlir.load(tmp_path / "model.so")


@pytest.mark.parametrize("sizes", [(), (2, 7)], ids=["compiled in", "arguments"])
def test_an_encoder(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(0)
    inputs = {
        "input_ids": generator.integers(0, 100, (2, 7)),
        "attention_mask": (generator.random((2, 7)) < 0.8).astype(np.int64),
    }
    found = differences(tmp_path, encoder(), inputs, sizes=sizes)
    assert max(found.values()) < NEAR
