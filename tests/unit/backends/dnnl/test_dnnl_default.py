"""What goes to oneDNN when the user named no targets."""

from __future__ import annotations

import pytest
from dnnl_models import model, node
from onnx import ModelProto

from byoc_mlir import compile as compile_model
from byoc_mlir.backends.dnnl.api import Api
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

PRODUCTS = model(
    [
        node("MatMul", "x w", "a"),
        node("Add", "a b", "c"),
        node("Gelu", "c", "d", approximate="tanh"),
        node("MatMul", "d v", "e"),
        node("Add", "e x", "f"),
        node("Softmax", "f", "y"),
    ],
    {"x": (33, 192)},
    {"w": (192, 512), "b": (512,), "v": (512, 192)},
)
CONVOLUTION = model(
    [node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("Relu", "a", "y")],
    {"x": (1, 32, 40, 40)},
    {"w": (32, 32, 3, 3)},
)


def _placements(
    built: ModelProto, avx512: bool, monkeypatch: pytest.MonkeyPatch
) -> tuple[set[str], set[str]]:
    """Where nodes ran, and why; the numbers are checked."""
    monkeypatch.setattr(Api, "has_avx512", property(lambda self: avx512))
    inputs = random_inputs(built, seed=3)
    with compile_model(built, threads=1) as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(built, inputs), tolerance=1e-5)
        rows = list(executable.report())
    return {row.placement for row in rows}, {row.reason for row in rows}


def test_products_stay_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    placements, reasons = _placements(PRODUCTS, False, monkeypatch)
    assert placements == {"host"}
    assert any(reason.startswith("demoted: without AVX-512") for reason in reasons)


def test_products_go_to_onednn_with_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    placements, _ = _placements(PRODUCTS, True, monkeypatch)
    assert "dnnl" in placements


def test_convolutions_go_to_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    placements, _ = _placements(CONVOLUTION, False, monkeypatch)
    assert placements == {"dnnl"}
