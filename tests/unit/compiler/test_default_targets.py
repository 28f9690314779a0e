"""Default targets without oneDNN: the host, and a warning that names the package to install."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

import byoc_mlir
from byoc_mlir.errors import BackendError
from byoc_mlir.onednn.library import load_library
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

MODEL = NETWORKS["mlp3"]()


@pytest.fixture
def without_onednn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("BYOC_DNNL_LIBRARY", "/nowhere/libdnnl.so.3")
    load_library.cache_clear()
    yield
    monkeypatch.undo()
    load_library.cache_clear()


@pytest.mark.usefixtures("without_onednn")
def test_the_host_does_it_all() -> None:
    with pytest.warns(UserWarning, match=r"without backend 'dnnl': .*pip install onednn-cpu-gomp"):
        executable = byoc_mlir.compile(MODEL)
    assert executable.report().counts().keys() == {"host", "removed"}
    inputs = random_inputs(MODEL, seed=0)
    assert_agrees(executable.run(inputs), run_onnxruntime(MODEL, inputs))


@pytest.mark.usefixtures("without_onednn")
@pytest.mark.parametrize("choice", [{"targets": ()}, {"fallback": "allow"}], ids=["host", "allow"])
def test_nobody_is_warned_who_knows(choice: dict[str, object]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        byoc_mlir.compile(MODEL, **choice)  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("without_onednn")
def test_a_target_that_is_named_must_be_there() -> None:
    with pytest.raises(BackendError, match="'dnnl' is not usable here"):
        byoc_mlir.compile(MODEL, targets=("dnnl",))
