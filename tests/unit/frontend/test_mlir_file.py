"""`.mlir` files and the weights beside them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from byoc_mlir.compiler.source import read_source
from byoc_mlir.frontend.files.mlir_file import read_mlir, write_mlir
from byoc_mlir.testing.networks import NETWORKS


@pytest.fixture(params=[0o022, 0o077], ids=["shared", "private"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_weights_may_be_read_by_those_who_may_read_the_text(umask: int, tmp_path: Path) -> None:
    module = read_source(NETWORKS["mlp3"]()).bind({}, {}).module
    write_mlir(module, tmp_path / "model.mlir")
    for name in ("model.mlir", "model.safetensors"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o666 & ~umask
    assert str(read_mlir(tmp_path / "model.mlir")) == str(module)
