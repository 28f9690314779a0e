"""Inputs and outputs that stay in the memory of a device."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_models import SIZE, nothing_left
from fakenpu.control import Control
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.errors import InvalidInputError, InvalidModelError
from byoc_mlir.inference_session import InferenceSession, OrtValue
from byoc_mlir.runtime.device_array import DeviceArray
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime


def dense() -> ModelProto:
    b = GraphBuilder("dense", seed=3)
    b.output(b.relu(b.gemm(b.input("x", [4, SIZE]), SIZE)), "y", [4, SIZE])
    return b.build()


def compiled(model: ModelProto, *resident: str, **options: Any) -> Executable:
    return byoc_mlir.compile(
        model, targets=("fakenpu",), resident=dict.fromkeys(resident, "fakenpu"), **options
    )


def copies(device: str = "fakenpu") -> tuple[int, int]:
    found = Control(device).counters()
    return found.copies_in, found.copies_out


def test_a_chain_on_the_device_copies_nothing() -> None:
    model = dense()
    given = random_inputs(model, seed=1)
    expected = run_onnxruntime(model, {"x": run_onnxruntime(model, given)["y"]})
    with nothing_left(), compiled(model, "x", "y") as first, compiled(model, "x", "y") as second:
        placed = first.to_device(given)
        before = copies()
        middle = first.run(placed)
        last = second.run({"x": middle["y"]})
        assert copies() == before
        assert isinstance(last["y"], DeviceArray)
        assert_agrees({"y": last["y"].numpy()}, expected, 1e-4)
        del placed, middle, last
        gc.collect()


def test_an_array_of_the_host_is_copied_once() -> None:
    model = dense()
    given = random_inputs(model, seed=1)
    with compiled(model, "x") as executable:
        before = copies()
        found = executable.run(given)
        after = copies()
        report = executable.report()
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)
    (traffic,) = report.devices
    assert (traffic.copies_in, traffic.resident_inputs) == (0, ("x",))
    assert "; each run with a host array for x copies it in, too" in str(report)
    assert_agrees(found, run_onnxruntime(model, given), 1e-4)


def test_an_array_of_the_device_is_copied_for_an_input_of_the_host() -> None:
    model = dense()
    given = random_inputs(model, seed=1)
    with compiled(model, "x") as resident, compiled(model) as executable:
        found = executable.run(resident.to_device(given))
    assert_agrees(found, run_onnxruntime(model, given), 1e-4)


def test_a_run_writes_into_a_given_array() -> None:
    model = dense()
    given = random_inputs(model, seed=1)
    with compiled(model, "y") as executable:
        out = executable.run(given)["y"]
        other = random_inputs(model, seed=2)
        found = executable.run(other, out={"y": out})
        assert found["y"].address == out.address
        assert_agrees({"y": out.numpy()}, run_onnxruntime(model, other), 1e-4)
        with pytest.raises(InvalidInputError, match=r"out: 'y' must be an array on device"):
            executable.run(other, out={"y": np.empty((4, SIZE), np.float32)})


def test_an_input_that_is_returned_is_another_array() -> None:
    b = GraphBuilder("through", seed=3)
    x = b.input("x", [4, SIZE])
    b.output(b.relu(b.gemm(x, SIZE)), "y", [4, SIZE])
    b.output(b.op("Identity", x), "z", [4, SIZE])
    model = b.build()
    given = random_inputs(model, seed=1)
    with compiled(model, "x", "y", "z") as executable:
        found = executable.run(given)
        values = {name: one.numpy() for name, one in found.items()}
    assert_agrees(values, run_onnxruntime(model, given), 1e-4)


def test_arrays_outlive_the_executable() -> None:
    model = dense()
    given = random_inputs(model, seed=1)
    with nothing_left():
        with compiled(model, "y") as executable:
            found = executable.run(given)["y"]
        assert_agrees({"y": found.numpy()}, run_onnxruntime(model, given), 1e-4)
        del found
        gc.collect()


def test_another_package_reads_and_keeps_an_array_by_dlpack() -> None:
    model = dense()
    with nothing_left(), compiled(model, "x", "y") as executable:
        placed = executable.to_device(random_inputs(model, seed=1))["x"]
        again = DeviceArray.imported(_Foreign(placed))
        assert (again.address, again.shape, again.dtype) == (
            placed.address,
            placed.shape,
            placed.dtype,
        )
        expected = executable.run({"x": placed})["y"].numpy()
        del placed
        gc.collect()
        assert np.array_equal(executable.run({"x": again})["y"].numpy(), expected)
        del again
        gc.collect()


class _Foreign:
    """Array of another package."""

    def __init__(self, array: DeviceArray):
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self) -> object:
        return self._array.__dlpack__()


@pytest.mark.parametrize(
    ("resident", "message"),
    [
        ({"q": "fakenpu"}, "resident names 'q', which is no input or output of the model: x, y"),
        ({"x": "gpu"}, "resident wants 'x' on 'gpu'; the targets have fakenpu"),
    ],
)
def test_an_unknown_name_or_device_is_refused(resident: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidModelError, match=message):
        byoc_mlir.compile(dense(), targets=("fakenpu",), resident=resident)


def test_a_wrong_shape_or_type_on_the_device_is_refused() -> None:
    with compiled(dense(), "x") as executable:
        placed = executable.to_device({"x": np.zeros((4, SIZE), np.float32)})["x"]
        for shape, dtype in (((SIZE, 4), placed.dtype), (placed.shape, np.dtype(np.int32))):
            other = DeviceArray(None, (12, 0), placed.address, shape, dtype, placed)
            with pytest.raises(InvalidInputError, match="input 'x' must"):
                executable.run({"x": other})


def test_a_second_process_finds_the_program(tmp_path: Path) -> None:
    model = dense()
    given = random_inputs(model, seed=1)
    for _ in range(2):
        with compiled(model, "x", "y", cache=tmp_path) as executable:
            found = executable.run(given)["y"].numpy()
            assert_agrees({"y": found}, run_onnxruntime(model, given), 1e-4)


def test_a_session_binds_memory_of_the_device(tmp_path: Path) -> None:
    model = dense()
    path = tmp_path / "dense.onnx"
    path.write_bytes(model.SerializeToString())
    given = random_inputs(model, seed=1)
    session = InferenceSession(path, providers=["fakenpu"])
    with compiled(model, "x", "y") as executable:
        placed = executable.to_device(given)["x"]
        binding = session.io_binding()
        binding.bind_input("x", "fakenpu", 0, np.float32, placed.shape, placed.address)
        binding.bind_output("y", "fakenpu")
        session.run_with_iobinding(binding)
        before = copies()
        session.run_with_iobinding(binding)
        assert copies() == before
        (value,) = binding.get_outputs()
        assert value.device_name() == "fakenpu"
        assert_agrees({"y": value.numpy()}, run_onnxruntime(model, given), 1e-4)
        binding.bind_ortvalue_input("x", OrtValue(placed))
        session.run_with_iobinding(binding)
        found = binding.copy_outputs_to_cpu()[0]
        assert_agrees({"y": found}, run_onnxruntime(model, given), 1e-4)
        with pytest.raises(InvalidInputError, match=r"device_type is 'tpu', accepted are 'cpu'"):
            binding.bind_output("y", "tpu")


@pytest.mark.parametrize("resident", [(), ("x", "y")])
def test_a_shared_object_takes_arrays_of_the_device(tmp_path: Path, resident: tuple[str]) -> None:
    model = dense()
    given = random_inputs(model, seed=1)
    with compiled(model, *resident) as executable:
        executable.export_library(tmp_path / "dense.so")
        placed = executable.to_device(given)
        with byoc_mlir.load(tmp_path / "dense.so") as loaded:
            found = loaded.run(placed)["y"]
            again = pickle.loads(pickle.dumps(executable)).run(given)["y"]
            for one in (found, again):
                assert_agrees({"y": np.asarray(one)}, run_onnxruntime(model, given), 1e-4)
