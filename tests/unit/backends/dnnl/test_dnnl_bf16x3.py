"""`precision="bf16x3"`: matmuls of `f32` as three of `bf16`."""

from __future__ import annotations

import re

import numpy as np
import pytest
from split_models import BOUND, MODELS, check_network, compiled, wide

from byoc_mlir.onednn.engine import Engine, engine
from byoc_mlir.testing.isa import call_at, distinct_levels
from byoc_mlir.testing.reference import random_inputs, run_onnxruntime


@pytest.mark.parametrize("name", MODELS)
def test_a_network(name: str) -> None:
    check_network(name)


@pytest.mark.parametrize("level", distinct_levels("avx2", "avx512_vnni"))
def test_a_processor_without_bf16(level: str) -> None:
    call_at(level, check_network, "attention")


def test_a_processor_without_amx_computes_in_f32() -> None:
    """Checks that matmuls stay in f32 without AMX, since three `bf16` matmuls take longer there."""
    if engine().has_amx:
        return
    model = MODELS["attention"]()
    with compiled(model, "") as executable:
        assert set(executable.report().multiplications) == {"f32"}
        assert "the model runs in f32, not in bf16x3" in str(executable.report())


def test_with_amx_products_are_split_that_take_less_time_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Checks the selection by time; `bf16` instructions stand in for AMX, so the selected matmuls
    are not asserted.
    """
    if not engine().has_bf16:
        return
    monkeypatch.setattr(Engine, "has_amx", True)
    model = wide()
    inputs = random_inputs(model)
    with compiled(model, "") as executable:
        found = executable.run(inputs)["y"]
        rows = {row.node: row.precision for row in executable.report()}
    wanted = run_onnxruntime(model, inputs)["y"]
    assert np.abs(found - wanted).max() <= BOUND * np.abs(wanted).max()
    assert rows["/Conv"] == "f32: 16,384 MACs do not pay"
    for node in ("/Conv_1", "/Conv_2", "/Gemm"):
        assert re.fullmatch("bf16x3|f32: .* takes .* ms, .* in bf16x3 .*", rows[node]), rows


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, np.finfo(np.float32).max])
def test_numbers_that_are_not_finite_or_almost(number: float) -> None:
    model = MODELS["convolutions"]()
    inputs = random_inputs(model)
    inputs["x"][1, 2, 7, 5] = number
    with compiled(model) as executable:
        found = executable.run(inputs)["y"]
    wanted = run_onnxruntime(model, inputs)["y"]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    clear = np.isfinite(wanted)
    assert np.abs(found - wanted)[clear].max() <= BOUND * np.abs(wanted[clear]).max()
