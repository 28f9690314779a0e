"""Whole models with cuDNN and generated kernels, on the recording driver."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

import pytest
from helpers.cuda.emulation import Record, recording_cublaslt, recording_cudnn

import byoc_mlir
from byoc_mlir.backends.cublaslt.library import CUBLASLT
from byoc_mlir.backends.cudnn.library import CUDNN
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_SMALL = {"mobilenet_v2": {"image": 32}, "unet": {"image": 32}}
"""Depthwise and transposed convolutions; ResNet-18 runs with all libraries below."""
_TARGETS = ("cudnn", "cuda")


@pytest.mark.parametrize("name", _SMALL)
def test_a_network_agrees(gpu: Record, cudnn: ctypes.CDLL, name: str) -> None:
    model = NETWORKS[name](**_SMALL[name])
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=_TARGETS, cache=False) as executable:
        found = executable.run(inputs)
        again = executable.run(inputs)

    assert_agrees(found, run_onnxruntime(model, inputs))
    assert_agrees(again, found, 0)
    rows = executable.report().rows
    convolutions = [row for row in rows if row.op_type in ("Conv", "ConvTranspose")]
    assert {row.placement for row in convolutions} == {"cudnn"}
    assert {row.placement for row in rows} <= {"cudnn", "cuda", "removed", "folded"}


def test_libraries_and_kernels_share_the_device(
    gpu: Record, cudnn: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CUBLASLT.environment, str(recording_cublaslt()))
    model = NETWORKS["resnet18"](image=32)
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=("cudnn", "cublaslt", "cuda"), cache=False) as executable:
        found = [executable.run(inputs) for _ in range(3)]

    wanted = run_onnxruntime(model, inputs)
    for one in found:  # enqueued, recorded and replayed
        assert_agrees(one, wanted)
    rows = executable.report().rows
    assert {row.placement for row in rows if row.op_type == "Conv"} == {"cudnn"}
    assert {row.placement for row in rows if row.op_type == "Gemm"} == {"cublaslt"}
    assert {row.placement for row in rows} <= {"cudnn", "cublaslt", "cuda", "removed", "folded"}


def test_the_cache_keeps_plans_of_one_library(
    gpu: Record, cudnn: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "libcudnn.so.9"
    shutil.copy(recording_cudnn(), library)
    monkeypatch.setenv(CUDNN.environment, str(library))
    model = NETWORKS["mnist"]()

    def is_from_cache() -> bool:
        with byoc_mlir.compile(model, targets=_TARGETS, cache=tmp_path / "cache") as executable:
            executable.run(random_inputs(model))
            return [name for name, _ in executable.report().compile_seconds] == ["cache"]

    assert not is_from_cache()
    assert is_from_cache()
    os.utime(library, ns=(0, 0))  # as by an installation of another version
    assert not is_from_cache()
