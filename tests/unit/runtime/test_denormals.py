"""Denormals in runs: on each thread, with each backend, and afterwards."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from helpers.models import parsed
from onnx import ModelProto
from process_models import elementwise, scaled

import byoc_mlir
from byoc_mlir.compiler.denormals import denormal_share
from byoc_mlir.compiler.request import Denormals, Request
from byoc_mlir.errors import ByocError
from byoc_mlir.runtime import Executable

SMALL = np.float32(1e-20)
"""Value whose square is denormal."""

SIZE = 1 << 18
"""Number of elements, enough for two threads."""


def product_model() -> ModelProto:
    return scaled(np.full(SIZE, SMALL))


def matmul_model() -> ModelProto:
    weights = {"w": np.full((1, 512), SMALL)}
    return parsed("(float[512, 1] x) => (float[512, 512] y)", "y = MatMul (x, w)", weights)


def nonzero(executable: Executable) -> float:
    """Returns the share of the results that is not zero."""
    shape = [int(size) for size in executable.inputs[0].shape]
    (result,) = executable.run({"x": np.full(shape, SMALL, np.float32)}).values()
    return float(np.mean(result != 0))


def compiled(
    model: ModelProto, denormals: Denormals, targets: tuple[str, ...], threads: int
) -> Executable:
    return byoc_mlir.compile(model, targets, threads, fallback="allow", denormals=denormals)


@pytest.mark.values
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("model", "targets"),
    [(product_model(), ()), (product_model(), ("dnnl",)), (matmul_model(), ("dnnl",))],
    ids=["host", "dnnl-binary", "dnnl-matmul"],
)
def test_each_executable_has_its_way(
    model: ModelProto, targets: tuple[str, ...], threads: int
) -> None:
    keep, flush = (compiled(model, mode, targets, threads) for mode in ("keep", "flush"))
    found = [nonzero(one) for one in (flush, keep, flush, flush, keep)]
    assert found == [0.0, 1.0, 0.0, 0.0, 1.0]
    assert np.all(np.full(8, SMALL) * np.full(8, SMALL) != 0)  # on this thread too


def test_artifacts_flush(tmp_path: Path) -> None:
    compiled(product_model(), "flush", (), 2).export_library(tmp_path / "model.so")
    assert nonzero(byoc_mlir.load(tmp_path / "model.so")) == 0.0


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(ByocError, match="accepted are 'keep', 'flush'"):
        byoc_mlir.compile(elementwise(), targets=(), denormals=cast(Denormals, "drop"))


def test_the_cache_tells_them_apart() -> None:
    requests = [
        Request(elementwise(), targets=(), threads=1, denormals=mode) for mode in ("keep", "flush")
    ]
    assert requests[0].choices != requests[1].choices


def test_many_denormal_weights_are_worth_a_warning() -> None:
    weights = np.ones((64, 64), np.float32)
    weights[:, :2] = 1e-40
    with pytest.warns(UserWarning, match=r"weight 'w' \(\d%\) are denormal"):
        byoc_mlir.compile(scaled(weights), targets=(), threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        byoc_mlir.compile(scaled(np.ones((64, 64), np.float32)), targets=(), threads=1)


def test_shares_of_denormals() -> None:
    some = np.zeros(1 << 20)
    some[::10] = 5e-324
    assert denormal_share(some) == pytest.approx(0.1, abs=0.03)
    assert denormal_share(some[:100]) == 0.0
    assert denormal_share(np.zeros(1 << 13, np.float32)) == 0.0
    assert denormal_share(np.full(1 << 13, np.nan, np.float32)) == 0.0
    assert denormal_share(np.full(1 << 13, 1e-7, np.float16)) == 0.0
