"""The GPU that is found, and why there is none."""

from __future__ import annotations

import re

import pytest
from helpers.cuda.emulation import Record
from helpers.cuda.fixtures import forgotten_gpus
from helpers.cuda.networks import kernels_of

from byoc_mlir.backends.cuda.device import CudaDevice
from byoc_mlir.backends.cuda.images import image_of, machine_code
from byoc_mlir.nvidia.driver import ENVIRONMENT_VARIABLE
from byoc_mlir.testing.networks import NETWORKS

__all__ = ["forgotten_gpus"]

pytestmark = pytest.mark.usefixtures("forgotten_gpus")


def test_a_gpu_is_described(gpu: Record) -> None:
    device = CudaDevice()

    assert device.unavailable() is None
    assert device.describe() == (
        "Recording GPU, compute capability 9.0, driver for CUDA 13.2, 8.0 GiB"
    )
    assert device.copy_milliseconds(10**7) == pytest.approx(1.01)


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("BYOC_TEST_NO_GPU", "1", "no CUDA-capable device is detected .*CUDA_VISIBLE_DEVICES"),
        ("BYOC_TEST_CUDA_VERSION", "11080", "supports CUDA 11.8, needed is 12.0 or later"),
        ("BYOC_TEST_CAPABILITY", "70", "compute capability 7.0, needed is 7.5 or later"),
    ],
)
def test_a_reason_says_what_was_found(
    gpu: Record, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    monkeypatch.setenv(variable, value)
    device = CudaDevice()

    found = device.unavailable()

    assert found is not None
    assert re.search(reason, found), found
    assert device.identity() == ""


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "/nowhere/libcuda.so.1")

    found = CudaDevice().unavailable()

    assert found is not None
    assert "/nowhere/libcuda.so.1" in found
    assert ENVIRONMENT_VARIABLE in found


def test_the_image_is_ptx_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "/nowhere/libcuda.so.1")
    (region,) = kernels_of(NETWORKS["mlp3"]())

    image = image_of(region.module)

    assert image.endswith(b"\n\0")
    assert b".target sm_75" in image
    assert image.count(b".visible .entry") == len(region.kernels)


def test_the_driver_links_machine_code(gpu: Record) -> None:
    assert machine_code(b"kernels\0") == b"kernels\0"
    assert [name for name in gpu.calls() if name.startswith("cuLink")] == [
        "cuLinkCreate_v2",
        "cuLinkAddData_v2",
        "cuLinkComplete",
        "cuLinkDestroy",
    ]
