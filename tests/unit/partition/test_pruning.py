"""Unprofitable regions: they go back to the host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends import Backend, CodegenContext, CSource, register_backend
from byoc_mlir.calibration import Calibration, measuring, write_calibration
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.partition import profitability
from byoc_mlir.compiler.request import Fallback, Prune, Request
from byoc_mlir.errors import ByocError
from byoc_mlir.runtime.report import RegionTimes


@register_backend
class Loops(Backend):
    """Backend that runs `tanh` far too slowly, and claims to have run a matmul in no time."""

    name = "pruned"
    generated: list[str] = []

    def op_rules(self):
        return {"tanh": lambda op: None, "nn.matmul": lambda op: None, "nn.dense": lambda op: None}

    def codegen(self, region, context):
        symbol = region.sym_name.data
        self.generated.append(symbol)
        if "matmul" in str(region) or "dense" in str(region):
            return CSource(f"int {symbol}(const float *x, const float *w, float *y){{return 0;}}")
        return CSource(
            "#include <math.h>\n"
            f"int {symbol}(const float *x, float *y)"
            "{ volatile float t = 0; for (int i = 0; i < 1000000; ++i) t += 1;"
            "  for (int i = 0; i < 8; ++i) y[i] = tanhf(x[i]); return 0; }",
            flags=("-O2", "-lm"),
        )


TANHS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[8] x) => (float[8] y) { a = Tanh(x)  b = Exp(a)  y = Tanh(b) }"""
SIZED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 24] x) => (float[n, 24] y) { y = MatMul(x, w) }"""
PRODUCT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[64, 512] x, float[512, 512] w) => (float[64, 512] y) { y = MatMul(x, w) }"""


def compiled(text: str, prune: Prune, **options: Any):
    model: onnx.ModelProto = parser.parse_model(text)
    options = {"targets": ("pruned",), "threads": 1, "fallback": "allow", **options}
    return byoc_mlir.compile(model, prune=prune, **options)


def placements(executable: byoc_mlir.Executable) -> list[tuple[str, str]]:
    return [(row.op_type, row.placement) for row in executable.report()]


def test_nothing_is_pruned_unless_asked_for():
    with compiled(TANHS, "off") as executable:
        assert [where for _, where in placements(executable)] == ["pruned", "host", "pruned"]


def test_what_is_slower_than_the_host_goes_back():
    Loops.generated.clear()
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    with compiled(TANHS, "measured") as executable:
        [y] = executable.run([x]).values()
        first, exp, last = executable.report()
    np.testing.assert_allclose(y, np.tanh(np.exp(np.tanh(x))), rtol=1e-5)
    assert (first.placement, exp.placement, last.placement) == ("host", "host", "host")
    for row in (first, last):
        assert row.reason.startswith("demoted: measured 0.0")
        assert row.reason.endswith(" ms on pruned")
    assert len(Loops.generated) == 1  # equal regions are measured once, and none is left


def test_what_is_faster_stays():
    with compiled(PRODUCT, "measured") as executable:
        assert placements(executable) == [("MatMul", "pruned")]


def test_little_work_goes_back():
    with compiled(TANHS, "estimated") as executable:
        first, _, _ = executable.report()
    assert first.placement == "host"
    assert first.reason == "demoted: the region does about 8 operations, less than 10000"
    with compiled(PRODUCT, "estimated") as executable:
        assert placements(executable) == [("MatMul", "pruned")]


def test_regions_of_little_work_go_back():
    with compiled(TANHS, "auto") as executable:
        assert [where for _, where in placements(executable)] == ["host"] * 3
    with compiled(PRODUCT, "auto") as executable:  # it does 34 million operations
        assert placements(executable) == [("MatMul", "pruned")]


def test_backends_are_believed_about_larger_models(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Loops, "faster_on_host", lambda self, region: "the host has a better way")
    unmeasured = PRODUCT.replace("512", "768")
    with compiled(unmeasured, "auto") as executable:
        [row] = executable.report()
    assert (row.placement, row.reason) == ("host", "demoted: the host has a better way")
    with compiled(PRODUCT, "off") as executable:
        assert placements(executable) == [("MatMul", "pruned")]


@register_backend
class Estimates(Loops):
    """Backend that estimates the times of its regions."""

    name = "estimates"
    milliseconds: float | None = None

    def estimated_milliseconds(self, region: FuncOp, context: CodegenContext) -> float | None:
        return self.milliseconds


@pytest.fixture
def no_calibration(tmp_path: Path) -> Path:
    """Writes a file with which nothing is measured: the estimate of PRODUCT on the host is 0.4
    ms."""
    write_calibration(Calibration(), tmp_path / "calibration.json")
    return tmp_path / "calibration.json"


@pytest.mark.parametrize(
    ("milliseconds", "placement", "reason"),
    [
        (0.1, "estimates", ""),
        (9.0, "host", "demoted: estimated 0.373 ms on the host, 9.000 ms on estimates"),
        (0.4, "host", "demoted: it says so"),
        (None, "host", "demoted: it says so"),
    ],
)
def test_estimates_decide_unless_they_are_near(
    milliseconds: float | None,
    placement: str,
    reason: str,
    no_calibration: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(Estimates, "milliseconds", milliseconds)
    monkeypatch.setattr(Estimates, "faster_on_host", lambda self, region: "it says so")
    options: dict[str, Any] = {"targets": ("estimates",), "calibration": no_calibration}
    with compiled(PRODUCT, "auto", **options) as executable:
        [row] = executable.report()
    assert (row.placement, row.reason) == (placement, reason)
    assert row.times is not None
    assert (row.times.obtained, row.times.backend_milliseconds) == ("estimated", milliseconds)


def test_an_estimate_that_fails_is_none(no_calibration: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(self: Backend, region: FuncOp, context: CodegenContext) -> float:
        raise KeyError("no such table")

    monkeypatch.setattr(Estimates, "estimated_milliseconds", fail)
    with compiled(
        PRODUCT, "auto", targets=("estimates",), calibration=no_calibration
    ) as executable:
        assert placements(executable) == [("MatMul", "estimates")]


@pytest.mark.parametrize(
    ("context", "obtained"), [(nullcontext, "estimated"), (measuring, "measured")]
)
def test_near_ones_are_measured_by_compilations_that_may(
    context: Callable[[], AbstractContextManager[None]],
    obtained: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(profitability, "_are_apart", lambda times: False)
    monkeypatch.setattr(Estimates, "milliseconds", 0.4)
    product = PRODUCT.replace("512", "640")
    with context(), compiled(product, "auto", targets=("estimates",)) as executable:
        [row] = executable.report()
    assert row.times is not None
    assert (row.placement, row.times.obtained) == ("estimates", obtained)


def test_one_measurement_is_for_all_sizes(monkeypatch: pytest.MonkeyPatch):
    """Checks that regions of one model are identified by weights, and equal regions by their
    ops."""
    measured: list[FuncOp] = []

    def counted(region: FuncOp, compile_part: Any) -> RegionTimes:
        measured.append(region)
        return RegionTimes("pruned", "measured", 3.0, 2.0)

    monkeypatch.setattr(profitability, "measured_times", counted)
    weight = np.random.default_rng(5).normal(size=(24, 24)).astype(np.float32)
    models: list[onnx.ModelProto] = [parser.parse_model(SIZED), parser.parse_model(SIZED)]
    for model, scale in zip(models, (1, 2), strict=True):
        model.graph.initializer.append(numpy_helper.from_array(weight * scale, "w"))
    options: dict[str, Any] = {"targets": ("pruned",), "threads": 1, "fallback": "allow"}
    for model, sizes in zip(models, ((4, 5, 9), (4, 7)), strict=True):
        with byoc_mlir.compile(model, prune="measured", **options) as executable:
            for size in sizes:
                x = np.ones((size, 24), np.float32)
                [y] = executable.run([x]).values()
                np.testing.assert_allclose(y, x @ (weight * (1 + (model is models[1]))), rtol=1e-4)
    assert len(measured) == 1


@pytest.mark.parametrize(
    ("targets", "fallback", "prune"),
    [(None, "warn", "auto"), (None, "forbid", "off"), ((), "warn", "off")],
)
def test_the_default(targets: tuple[str, ...] | None, fallback: Fallback, prune: Prune):
    request = Request(b"", targets=targets, threads=1, fallback=fallback)
    assert CompileOptions.of(request).prune == prune


def test_other_values_are_refused():
    with pytest.raises(ByocError, match="prune is 'maybe', accepted are 'off', 'estimated'"):
        compiled(TANHS, cast(Prune, "maybe"))
