"""Commands and verifications with inputs and outputs that stay on a device."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import onnx
import pytest
from device_models import SIZE
from fakenpu.eltwise_backend import FakeNpuEltwiseBackend
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends import CodegenContext, CSource, register_backend
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import random_inputs
from byoc_mlir.tools import byoc


@register_backend
class WrongRelu(FakeNpuEltwiseBackend):
    """Backend on the device whose ReLU lets small negative elements through."""

    name: ClassVar[str] = "fakenpu_wrong"

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        code = super().codegen(region, context)
        return replace(code, source=code.source.replace("< 0.0f ?", "< -0.5f ?"))


@pytest.fixture
def relu(tmp_path: Path) -> Path:
    b = GraphBuilder("relu", seed=3)
    b.output(b.relu(b.input("x", [4, SIZE])), "y", [4, SIZE])
    path = tmp_path / "relu.onnx"
    path.write_bytes(b.build().SerializeToString())
    return path


RESIDENT = ("--resident", "x=fakenpu", "--resident", "y=fakenpu")


@pytest.mark.parametrize("against", ["onnxruntime", "host"])
def test_a_wrong_output_on_the_device_is_found(
    relu: Path, against: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["verify", str(relu), "--targets", "fakenpu_wrong", *RESIDENT, "--against", against]
    assert byoc.main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["tensor"] for one in found["outputs"]] == ["y"]
    assert found["part"]["placement"] == "fakenpu_wrong"


def test_a_right_output_on_the_device_agrees(relu: Path) -> None:
    inputs = random_inputs(onnx.load(relu), seed=1)
    with byoc_mlir.compile(
        relu, targets=("fakenpu_eltwise",), resident={"x": "fakenpu", "y": "fakenpu"}
    ) as executable:
        found = executable.verify(executable.to_device(inputs), nodes=True)
    assert found.agrees
    assert [one.tensor for one in found.outputs] == ["y"]
    assert "y" in {one.tensor for one in found.nodes}


def test_the_command_run_shows_outputs_on_the_device(
    relu: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", str(relu), "--targets", "fakenpu_eltwise"]
    written = [tmp_path / "host.npz", tmp_path / "device.npz"]
    assert byoc.main([*words, "--output", str(written[0])]) == 0
    assert byoc.main([*words, *RESIDENT, "--compare", "f32", "--output", str(written[1])]) == 0
    assert f"float32[4, {SIZE}]" in capsys.readouterr().out
    np.testing.assert_array_equal(*(np.load(path)["y"] for path in written))
