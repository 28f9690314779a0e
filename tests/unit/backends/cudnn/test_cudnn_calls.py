"""Regions on the recording cuDNN: the order of calls, what is held, faults and versions."""

from __future__ import annotations

import ctypes
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from helpers.cuda.emulation import Record
from helpers.models import parsed
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.errors import ByocError, DeviceError
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_TARGETS = ("cudnn", "cuda")


def _block(width: int = 8) -> ModelProto:
    """Returns a model with two convolutions: one with a bias, one with a residual."""
    inputs = f"float[2, 4, 9, {width}] x, float[6, 4, 3, 3] w, float[6] b, float[6, 6, 1, 1] u"
    return parsed(
        f"({inputs}) => (float[2, 6, 9, {width}] z)",
        """
        a = Conv <pads = [1, 1, 1, 1]> (x, w, b)
        r = Relu (a)
        c = Conv (r, u)
        s = Add (r, c)
        z = Relu (s)
        """,
    )


_EXECUTION_FAILED = 5000


def _exported(folder: Path) -> Path:
    file = folder / "model.so"
    with byoc_mlir.compile(_block(), targets=_TARGETS, cache=False) as executable:
        executable.export_library(file)
    return file


def test_plans_are_loaded_once_and_enqueued_in_order(
    gpu: Record, cudnn: ctypes.CDLL, tmp_path: Path
) -> None:
    file, model = _exported(tmp_path), _block()
    inputs = random_inputs(model)
    gpu.forget()

    with byoc_mlir.load(file) as loaded:
        calls = [name for name in gpu.calls() if name.startswith("cudnn")]
        plan = ("CreateDescriptor", *["SetAttribute"] * 2, "Finalize")
        assert calls == ["cudnnCreate", *(f"cudnnBackend{name}" for name in plan * 2)]
        for _ in range(2):
            gpu.forget()
            assert_agrees(loaded.run(inputs), run_onnxruntime(model, inputs))
            pack = ("CreateDescriptor", *["SetAttribute"] * 3, "Finalize", "Execute")
            run = (*(f"cudnnBackend{name}" for name in pack), "cudnnBackendDestroyDescriptor")
            calls = [name for name in gpu.calls() if name.startswith("cudnn")]
            assert calls == ["cudnnSetStream", *run * 2]
        assert gpu.calls().count("cuStreamSynchronize") == 1
        gpu.forget()
        assert_agrees(loaded.run(inputs), run_onnxruntime(model, inputs))
        assert "cuGraphLaunch" in gpu.calls()
        assert not any(name.startswith("cudnn") for name in gpu.calls())
        gpu.forget()
    calls = [name for name in gpu.calls() if name.startswith("cudnn")]
    assert calls == [*["cudnnBackendDestroyDescriptor"] * 2, "cudnnDestroy"]


@pytest.mark.parametrize(
    ("function", "after"),
    [
        ("cudnnCreate", 0),
        ("cudnnBackendCreateDescriptor", 0),
        ("cudnnBackendCreateDescriptor", 1),
        ("cudnnBackendSetAttribute", 0),
        ("cudnnBackendSetAttribute", 3),
        ("cudnnBackendFinalize", 1),
    ],
)
def test_a_fault_of_loading_leaves_nothing(
    gpu: Record, cudnn: ctypes.CDLL, tmp_path: Path, function: str, after: int
) -> None:
    file = _exported(tmp_path)
    held = gpu.held()
    gpu.fail(function, _EXECUTION_FAILED, after)

    with pytest.raises(DeviceError, match="CUDNN_STATUS_EXECUTION_FAILED"):
        byoc_mlir.load(file)

    assert gpu.held() == held
    gpu.forget()
    byoc_mlir.load(file).close()


@pytest.mark.parametrize(
    ("function", "after"),
    [
        ("cudnnSetStream", 0),
        ("cudnnBackendCreateDescriptor", 1),
        ("cudnnBackendSetAttribute", 0),
        ("cudnnBackendSetAttribute", 5),
        ("cudnnBackendFinalize", 0),
        ("cudnnBackendExecute", 1),
    ],
)
def test_a_fault_of_a_run_is_typed(
    gpu: Record, cudnn: ctypes.CDLL, function: str, after: int
) -> None:
    model = _block()
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=_TARGETS, cache=False) as executable:
        executable.run(inputs)
        gpu.fail(function, _EXECUTION_FAILED, after)
        with pytest.raises(DeviceError, match=r"'cuda'.*CUDNN_STATUS_EXECUTION_FAILED"):
            executable.run(inputs)
        gpu.forget()
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))


def test_another_version_is_refused_by_its_name(
    gpu: Record, cudnn: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _exported(tmp_path)
    monkeypatch.setenv("BYOC_TEST_CUDNN_VERSION", "92001")

    with pytest.raises(ByocError, match=r"compiled for cuDNN 9\.19\.0.*compile the model again"):
        byoc_mlir.load(file)


def test_a_convolution_without_an_engine_goes_to_the_next_target(
    gpu: Record, cudnn: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOC_TEST_NO_ENGINE", "1")
    model = _block(width=7)
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=_TARGETS, cache=False) as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        assert {row.placement for row in executable.report().rows} == {"cuda"}


def test_threads_share_the_handle(gpu: Record, cudnn: ctypes.CDLL) -> None:
    model = _block()
    given = [random_inputs(model, seed) for seed in range(4)]
    wanted = [run_onnxruntime(model, inputs) for inputs in given]
    wrong: list[int] = []

    with byoc_mlir.compile(model, targets=_TARGETS, cache=False) as executable:

        def run(number: int) -> None:
            for _ in range(20):
                found = executable.run(given[number])
                if not np.allclose(found["z"], wanted[number]["z"], rtol=1e-4, atol=1e-5):
                    wrong.append(number)

        threads = [Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert not wrong
    assert gpu.calls().count("cudnnCreate") == 1
