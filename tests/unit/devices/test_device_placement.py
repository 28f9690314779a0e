"""Placement where no targets are named: connected regions are judged with their copies."""

from __future__ import annotations

import pytest
from device_models import NoPools
from fakenpu.c_backend import FakeNpuBackend
from fakenpu.device import FakeNpu
from fakenpu.eltwise_backend import FakeNpuEltwiseBackend
from onnx import ModelProto
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends import CodegenContext
from byoc_mlir.runtime.report import Report
from byoc_mlir.testing.networks import GraphBuilder

SIZE = 512


def _chain() -> ModelProto:
    """Returns dense layers with a tanh between, which another backend of the device takes."""
    b = GraphBuilder("chain", seed=0)
    x = b.op("Tanh", b.gemm(b.input("x", [64, SIZE]), SIZE))
    b.channels[x] = SIZE
    b.output(b.gemm(x, SIZE), "out", [64, SIZE])
    return b.build()


def _report(monkeypatch: pytest.MonkeyPatch, copy: float | None, region: float | None) -> Report:
    """Compiles for the default backends; `copy` and `region` are milliseconds on the device."""

    def estimate(backend: object, function: FuncOp, context: CodegenContext) -> float | None:
        return region

    def copy_milliseconds(device: object, size: int) -> float | None:
        return copy

    for backend in (FakeNpuBackend, FakeNpuEltwiseBackend):
        monkeypatch.setattr(backend, "used_by_default", True)
        monkeypatch.setattr(backend, "estimated_milliseconds", estimate)
    monkeypatch.setattr(FakeNpu, "copy_milliseconds", copy_milliseconds)
    monkeypatch.setattr(NoPools, "used_by_default", False)  # it inherits what was set above
    with byoc_mlir.compile(
        _chain(), fallback="allow", cache=False, disable=("dnnl",)
    ) as executable:
        return executable.report()


def _on_device(report: Report) -> bool:
    placements = {row.placement for row in report} & {"host", "fakenpu", "fakenpu_eltwise"}
    assert placements in ({"host"}, {"fakenpu", "fakenpu_eltwise"})
    return placements != {"host"}


def test_two_copies_are_compared_not_those_of_each_region(monkeypatch: pytest.MonkeyPatch) -> None:
    report = _report(monkeypatch, copy=0.001, region=0.001)
    assert _on_device(report)
    (traffic,) = report.devices
    assert (traffic.copies_in, traffic.copies_out) == (1, 1)


def test_copies_send_all_connected_regions_home(monkeypatch: pytest.MonkeyPatch) -> None:
    report = _report(monkeypatch, copy=1e3, region=0.001)
    assert not _on_device(report)
    for row in report.placed("host"):
        assert "ms on fakenpu with 2 copies of 262,144 bytes" in row.reason, row
    assert "2000.003 ms" in report.rows[0].reason


def test_copies_alone_decide_where_times_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _on_device(_report(monkeypatch, copy=1e3, region=None))
    assert _on_device(_report(monkeypatch, copy=None, region=None))
