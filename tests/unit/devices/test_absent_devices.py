"""Models for a device that the machine lacks are compiled, and refused where they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import fakenpu.device
import pytest
from device_models import NoPools
from fakenpu.control import Control, Fault
from fakenpu.device import FakeNpu

import byoc_mlir
from byoc_mlir.errors import DeviceError, ExecutionError
from byoc_mlir.runtime.devices import explaining_absence
from byoc_mlir.testing.networks import mlp3
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime
from byoc_mlir.tools import byoc
from byoc_mlir.tools.commands.doctor import findings

REASON = "there is no card in slot 3; insert one"


def _reason(_: FakeNpu) -> str:
    return REASON


def _nothing(_: FakeNpu) -> str:
    return ""


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the device away: the plug-in says so, and no queue can be opened."""
    monkeypatch.setattr(FakeNpu, "unavailable", _reason)
    monkeypatch.setattr(FakeNpu, "identity", _nothing)


def test_a_model_is_compiled_for_a_device_that_is_missing(absent: None, tmp_path: Path) -> None:
    model, file = mlp3(), tmp_path / "model.so"
    with Control("fakenpu").identified(""), Control("fakenpu").fault(Fault.OPEN):
        executable = byoc_mlir.compile(
            model, targets=("fakenpu",), load=False, cache=False, fallback="allow"
        )
        assert "fakenpu" in executable.report().counts()
        executable.export_library(file)
        with pytest.raises(DeviceError, match=f"device 'fakenpu' is not usable here: {REASON}"):
            executable.run(random_inputs(model))
    with Control("fakenpu").fault(Fault.OPEN), pytest.raises(DeviceError, match=REASON):
        byoc_mlir.load(file)


def test_what_is_no_class_of_the_device_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    with byoc_mlir.compile(mlp3(), targets=("fakenpu",), cache=False) as executable:
        (device,) = executable.program.devices
    called: list[str] = []
    monkeypatch.setattr(fakenpu.device, "harmful", lambda: called.append("harm"), raising=False)
    named = replace(device, plugin="fakenpu.device:harmful")
    with pytest.raises(ExecutionError, match="lost"), explaining_absence([named]):
        raise ExecutionError("lost")
    assert not called


def test_compiling_to_run_is_refused_at_once(absent: None) -> None:
    with pytest.raises(DeviceError, match=rf"{REASON}; compile\(load=False\) compiles"):
        byoc_mlir.compile(mlp3(), targets=("fakenpu",))


def test_a_program_is_loaded_by_its_first_run() -> None:
    model, control = mlp3(), Control("fakenpu")
    inputs = random_inputs(model)
    before = control.counters()
    with byoc_mlir.compile(
        model, targets=("fakenpu",), load=False, cache=False, fallback="allow"
    ) as executable:
        assert control.counters() == before
        with control.fault(Fault.ALLOCATE), pytest.raises(DeviceError, match="device 'fakenpu'"):
            executable.run(inputs)
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-4)
    assert control.counters().live_bytes == before.live_bytes


def test_a_program_that_is_not_loaded_can_be_closed() -> None:
    executable = byoc_mlir.compile(
        mlp3(), targets=("fakenpu",), load=False, cache=False, fallback="allow"
    )
    executable.close()
    with pytest.raises(byoc_mlir.errors.ExecutionError, match="closed"):
        executable.run(random_inputs(mlp3()))


def test_the_command_compile_needs_no_device(
    absent: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mlp.so"
    with Control("fakenpu").fault(Fault.OPEN):
        assert byoc.main(["compile", "mlp3", "--targets", "fakenpu", "-o", str(file)]) == 0
    assert file.is_file()
    assert str(file) in capsys.readouterr().out


def test_doctor_lists_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(findings(measure=False))
    assert found["device fakenpu"] == Control("fakenpu").identity()
    monkeypatch.setattr(FakeNpu, "unavailable", _reason)
    assert dict(findings(measure=False))["device fakenpu"] == REASON


def test_a_missing_device_is_no_default(absent: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from fakenpu.c_backend import FakeNpuBackend

    monkeypatch.setattr(FakeNpuBackend, "used_by_default", True)
    monkeypatch.setattr(NoPools, "used_by_default", False)
    with pytest.warns(UserWarning, match=f"without backend 'fakenpu': device .*{REASON}"):
        executable = byoc_mlir.compile(mlp3(), cache=False)
    assert "fakenpu" not in executable.report().counts()
