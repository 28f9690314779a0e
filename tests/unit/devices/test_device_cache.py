"""Programs in the cache, and files, serve the device that they were compiled for."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakenpu.control import Control
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.errors import DeviceError
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.testing.networks import mlp3
from byoc_mlir.testing.reference import random_inputs

OTHER = "npu of another generation"


def _compiled(model: ModelProto, cache: Path, *targets: str) -> Executable:
    return byoc_mlir.compile(model, targets=targets or ("fakenpu",), cache=cache, fallback="allow")


def _is_from_cache(executable: Executable) -> bool:
    return [stage for stage, _ in executable.report().compile_seconds] == ["cache"]


def test_a_program_is_found_for_the_same_device_only(tmp_path: Path) -> None:
    model, device = mlp3(), Control("fakenpu")
    assert not _is_from_cache(_compiled(model, tmp_path))
    assert _is_from_cache(_compiled(model, tmp_path))
    with device.identified(OTHER):
        again = _compiled(model, tmp_path)
        assert not _is_from_cache(again)
        assert [one.identity for one in again.program.devices] == [OTHER]
        assert _is_from_cache(_compiled(model, tmp_path))
    assert _is_from_cache(_compiled(model, tmp_path)), "the cache keeps a program for each device"


def test_the_identity_of_other_devices_does_not_matter(tmp_path: Path) -> None:
    model = mlp3()
    _compiled(model, tmp_path)
    with Control("fakenpu2").identified(OTHER):
        assert _is_from_cache(_compiled(model, tmp_path))


def test_a_file_is_refused_on_another_device(tmp_path: Path) -> None:
    model, file = mlp3(), tmp_path / "model.so"
    with _compiled(model, tmp_path) as executable:
        executable.export_library(file)
    with Control("fakenpu").identified(OTHER), pytest.raises(DeviceError, match=OTHER):
        byoc_mlir.load(file)
    with byoc_mlir.load(file) as loaded:
        loaded.run(random_inputs(model))
