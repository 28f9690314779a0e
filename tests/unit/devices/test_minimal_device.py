"""A device whose class has a name and a library only."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from device_models import compiled
from fakenpu.control import Control
from fakenpu.eltwise_backend import FakeNpuEltwiseBackend
from fakenpu.library import library
from onnx import ModelProto
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends import CodegenContext, CSource, register_backend
from byoc_mlir.backends.c_function import c_function
from byoc_mlir.devices import Device, register_device
from byoc_mlir.devices.registry import identity_of
from byoc_mlir.errors import DeviceError
from byoc_mlir.runtime.instance import instance_of
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import random_inputs
from byoc_mlir.tools.commands.doctor import findings


class Minimal(Device):
    """Device as the page for vendors shows it."""

    name: ClassVar[str] = "fakenpu"
    path: ClassVar[Path] = library("fakenpu")

    def library(self) -> Path:
        return self.path


@register_device
class Lost(Minimal):
    """Device whose driver is not installed."""

    name: ClassVar[str] = "npu_lost"
    path: ClassVar[Path] = Path("libnpu_lost.so.1")


@register_backend
class LostBackend(FakeNpuEltwiseBackend):
    """Backend on the device whose driver is not installed."""

    name: ClassVar[str] = "npu_lost"
    memory_space: ClassVar[str] = "npu_lost"


@register_device
class Gone(Minimal):
    """Device whose driver a test removes."""

    name: ClassVar[str] = "npu_gone"
    path: ClassVar[Path] = Path("libnpu_gone.so.1")

    def unavailable(self) -> str | None:
        return None if self.path.exists() else "insert a card"


@register_backend
class GoneBackend(FakeNpuEltwiseBackend):
    """Backend on the device whose driver a test removes."""

    name: ClassVar[str] = "npu_gone"
    memory_space: ClassVar[str] = "npu_gone"


def test_the_library_says_which_device_there_is() -> None:
    device, control = Minimal(), Control("fakenpu")
    assert device.unavailable() is None
    assert device.identity() == device.describe() == control.identity()
    with control.identified(""):
        assert device.identity() == ""
        assert device.unavailable() == "fakenpu_identity returns an empty text: it finds no device"


@pytest.mark.parametrize("content", [None, b"junk"])
def test_a_library_that_cannot_be_loaded_is_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    path = tmp_path / "libjunk.so"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(Minimal, "path", path)
    device = Minimal()
    assert device.identity() == ""
    assert f"cannot load {path}" in (device.unavailable() or "")


def test_a_library_without_the_function_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Minimal, "path", library("fakenpu2"))
    assert f"{library('fakenpu2')} lacks fakenpu_identity" in (Minimal().unavailable() or "")


def test_a_backend_without_its_device_is_not_ready() -> None:
    found = dict(findings(measure=False))
    for row in ("device npu_lost", "backend npu_lost"):
        assert "cannot load libnpu_lost.so.1" in found[row]


def test_a_class_that_raises_is_a_fault_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def identity(_: Device) -> str:
        raise OSError("no such driver")

    monkeypatch.setattr(Lost, "identity", identity)
    with pytest.raises(DeviceError, match="device 'npu_lost' is not usable here: cannot load"):
        identity_of(Lost())


def _relu() -> ModelProto:
    b = GraphBuilder("relu", seed=3)
    b.output(b.relu(b.input("x", [4, 4])), "y", [4, 4])
    return b.build()


def test_a_run_asks_for_the_device() -> None:
    model, control = _relu(), Control("fakenpu")
    with (
        control.identified(""),
        compiled(model, "fakenpu_eltwise", load=False, cache=False) as executable,
        pytest.raises(
            DeviceError, match=r"device 'fakenpu' is not usable here: .* finds no device"
        ),
    ):
        executable.run(random_inputs(model))


def test_a_function_that_the_library_lacks_is_named() -> None:
    with compiled(_relu(), "fakenpu_eltwise", cache=False) as executable:
        program = executable.program
    needing = replace(program, externals=(*program.externals, "fakenpu_missing"))
    with pytest.raises(DeviceError, match=r"the library .*libfakenpu.so lacks fakenpu_missing"):
        instance_of(needing)


def test_a_file_for_a_device_whose_library_is_lost_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, driver = tmp_path / "relu.so", tmp_path / "libnpu_gone_copy.so"
    shutil.copy(library("npu_gone"), driver)
    monkeypatch.setattr(Gone, "path", driver)
    with compiled(_relu(), "npu_gone", cache=False) as executable:
        assert "npu_gone" in executable.report().counts()
        executable.export_library(file)
    driver.unlink()
    with pytest.raises(DeviceError, match="device 'npu_gone' is not usable here: insert a card"):
        byoc_mlir.load(file)


def test_c_function_is_not_for_devices() -> None:
    class OnDevice(FakeNpuEltwiseBackend):
        name: ClassVar[str] = "npu_c_function"

        def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
            return CSource(c_function(region, lambda op, operands, result: ""))

    register_backend(OnDevice)
    with compiled(_relu(), "npu_c_function", cache=False) as executable:
        (reason, *_) = executable.report().warnings
    assert "backend 'npu_c_function' runs on device 'fakenpu'; generate C that enqueues" in reason
