"""Chains of regions as CUDA graphs: recorded once, replayed, and forgotten."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.cuda.emulation import Record
from helpers.models import parsed
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.errors import DeviceError
from byoc_mlir.runtime import Executable
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_RECORDS, _REPLAYS = "cuStreamBeginCapture_v2", "cuGraphLaunch"


def _parted() -> ModelProto:
    """Returns a model with a power, which only the host computes, between two chains."""
    body = "a = Relu(x) b = Pow(a, p) c = Softmax(b) y = Tanh(c)"
    return parsed("(float[40, 50] x, float[40, 50] p) => (float[40, 50] y)", body)


def _compiled(model: ModelProto, **options: Any) -> Executable:
    return byoc_mlir.compile(model, targets=("cuda",), cache=False, **options)


def _counted(gpu: Record, *names: str) -> list[int]:
    found = [gpu.calls().count(name) for name in names]
    gpu.forget()
    return found


def test_the_second_run_records_and_the_third_replays(gpu: Record) -> None:
    model = NETWORKS["mlp3"]()

    with _compiled(model) as executable:
        found: list[list[int]] = []
        for seed in range(4):
            inputs = random_inputs(model, seed)
            gpu.forget()
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
            found.append(_counted(gpu, "cuLaunchKernel", _RECORDS, _REPLAYS))

    launches = found[0][0]
    assert launches > 1
    assert found == [[launches, 0, 0], [launches, 1, 1], [0, 0, 1], [0, 0, 1]]


def test_each_chain_has_a_recording(gpu: Record) -> None:
    model = _parted()
    inputs = random_inputs(model)

    with _compiled(model) as executable:
        for _ in range(3):
            gpu.forget()
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        assert _counted(gpu, "cuLaunchKernel", _RECORDS, _REPLAYS) == [0, 0, 2]


def test_each_context_records(gpu: Record) -> None:
    model = NETWORKS["mlp3"]()
    inputs = random_inputs(model)
    wanted = run_onnxruntime(model, inputs)
    gate = threading.Barrier(3)

    def run() -> None:
        gate.wait()
        for _ in range(5):
            assert_agrees(executable.run(inputs), wanted)

    with _compiled(model) as executable:
        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert gpu.calls().count(_RECORDS) <= 3


def test_other_addresses_are_not_replayed(gpu: Record) -> None:
    model = parsed("(float[40] x) => (float[40] y)", "a = Relu(x) y = Softmax(a)")
    resident = {"x": "cuda", "y": "cuda"}

    with _compiled(model, resident=resident) as executable:
        inputs = [executable.to_device({"x": np.full(40, n, np.float32)}) for n in range(2)]
        out = executable.run(inputs[0])
        for number in (0, 1, 0, 1, 1, 1, 0):
            executable.run(inputs[number], out=out)
            np.testing.assert_allclose(np.asarray(out["y"]), np.full(40, 1 / 40), rtol=1e-6)
        assert _counted(gpu, _RECORDS, _REPLAYS) == [2, 3]


@pytest.mark.parametrize(
    ("function", "after"),
    [
        ("cuStreamBeginCapture_v2", 0),
        ("cuLaunchKernel", 0),
        ("cuLaunchKernel", 1),
        ("cuStreamEndCapture", 0),
        ("cuGraphInstantiateWithFlags", 0),
        ("cuGraphLaunch", 0),
    ],
)
def test_a_fault_of_a_recording_is_typed(gpu: Record, function: str, after: int) -> None:
    model = NETWORKS["mlp3"]()
    inputs = random_inputs(model)
    wanted = run_onnxruntime(model, inputs)

    with _compiled(model) as executable:
        executable.run(inputs)
        gpu.fail(function, 2, after)
        with pytest.raises(DeviceError, match=r"device 'cuda'.*out of memory"):
            executable.run(inputs)
        gpu.forget()
        for _ in range(3):
            assert_agrees(executable.run(inputs), wanted)
        assert gpu.calls()[-3:].count(_RECORDS) == 0


def test_a_profile_has_each_region(gpu: Record) -> None:
    model = NETWORKS["mlp3"]()
    inputs = random_inputs(model)

    with _compiled(model, profile=True) as executable:
        executable.profile(inputs)
        assert _RECORDS not in gpu.calls()


def test_an_artifact_records(gpu: Record, tmp_path: Path) -> None:
    model, file = NETWORKS["mlp3"](), tmp_path / "model.so"
    inputs = random_inputs(model)
    with _compiled(model) as executable:
        executable.export_library(file)

    with byoc_mlir.load(file) as loaded:
        for _ in range(3):
            assert_agrees(loaded.run(inputs), run_onnxruntime(model, inputs))
        assert gpu.calls().count(_REPLAYS) == 2
