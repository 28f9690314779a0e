"""Plans of NVIDIA's cuDNN, made without a GPU from the saved properties of an H200."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from helpers.cuda.networks import regions_of

from byoc_mlir.backends.cudnn.backend import CudnnBackend
from byoc_mlir.backends.cudnn.constants import DataType, Numerics
from byoc_mlir.backends.cudnn.convolutions import FusedConvolution, call_of
from byoc_mlir.backends.cudnn.library import CUDNN
from byoc_mlir.backends.cudnn.plans import plan_of
from byoc_mlir.backends.cudnn.properties import ENVIRONMENT_VARIABLE
from byoc_mlir.backends.region import nodes_of
from byoc_mlir.errors import BackendError
from byoc_mlir.nvidia.driver import ENVIRONMENT_VARIABLE as DRIVER_VARIABLE
from byoc_mlir.testing.networks import NETWORKS

pytestmark = pytest.mark.usefixtures("saved_h200")

_CONVOLUTIONS = {
    "mnist": 2,
    "resnet18": 20,
    "resnet50": 53,
    "mobilenet_v2": 52,
    "efficientnet_b0": 81,
    "vgg16": 13,
    "inception_v3": 94,
    "densenet121": 120,
    "squeezenet": 26,
    "shufflenet": 49,
    "unet": 23,
    "vit_tiny": 1,
    "ssd_raw": 16,
}
"""Number of convolutions of each bundled network that has some, but the one that is split."""

_ROUNDING = {Numerics.TENSOR_CORE, Numerics.DOWN_CONVERT_INPUTS}


@pytest.mark.parametrize("name", _CONVOLUTIONS)
def test_each_convolution_of_a_network_has_a_plan_of_full_f32(name: str) -> None:
    regions = regions_of(NETWORKS[name](), ("cudnn", "cuda"), "cudnn")
    plans = [plan_of(call_of(op).convolution) for region in regions for op in nodes_of(region)]

    assert len(plans) == _CONVOLUTIONS[name]
    for plan in plans:
        document = json.loads(plan.json)
        assert not plan.notes & _ROUNDING
        assert document["engine"]["engineId"] == plan.engine
        assert document["GPUProfile"]["deviceName"] == "NVIDIA H200"


def _convolution(type_: DataType, **parts: bool) -> FusedConvolution:
    sizes = ((1, 64, 56, 56), (64, 64, 3, 3), (1, 64, 56, 56))
    ones = ((1, 1), (1, 1), (1, 1), (1, 1))
    return FusedConvolution(type_, *sizes, *ones, **parts)


_PARTS = (
    {},
    {"has_bias": True},
    {"has_bias": True, "has_relu": True},
    {"has_bias": True, "has_residual": True},
    {"has_bias": True, "has_residual": True, "has_relu": True},
)


@pytest.mark.parametrize("parts", _PARTS, ids=lambda parts: "_".join(parts) or "alone")
def test_f16_uses_tensor_cores_and_f32_does_not(parts: dict[str, bool]) -> None:
    assert Numerics.TENSOR_CORE in plan_of(_convolution(DataType.F16, **parts)).notes
    assert Numerics.TENSOR_CORE not in plan_of(_convolution(DataType.F32, **parts)).notes


def test_tf32_is_used_where_it_is_allowed() -> None:
    plan = plan_of(_convolution(DataType.F32, has_bias=True, may_round=True))

    assert Numerics.TENSOR_CORE in plan.notes


_SHAPES = {
    "depthwise": ((2, 32, 28, 28), (32, 1, 3, 3), (2, 32, 28, 28), (1, 1), (1, 1), (1, 1), (1, 1)),
    "groups": ((1, 32, 28, 28), (64, 8, 3, 3), (1, 64, 28, 28), (1, 1), (1, 1), (1, 1), (1, 1)),
    "dilated": ((1, 8, 28, 28), (6, 8, 3, 3), (1, 6, 28, 28), (1, 1), (2, 2), (2, 2), (2, 2)),
    "uneven": ((1, 8, 28, 28), (6, 8, 3, 3), (1, 6, 14, 14), (2, 2), (0, 0), (1, 1), (1, 1)),
    "1-D": ((1, 8, 1, 90), (6, 8, 1, 3), (1, 6, 1, 90), (1, 1), (0, 1), (0, 1), (1, 1)),
    "3-D": (
        *((1, 8, 9, 9, 9), (6, 8, 3, 3, 3), (1, 6, 9, 9, 9)),
        *((1,) * 3, (1,) * 3, (1,) * 3, (1,) * 3),
    ),
}


@pytest.mark.parametrize("name", _SHAPES)
@pytest.mark.parametrize("type_", DataType)
@pytest.mark.parametrize("parts", [_PARTS[0], _PARTS[-1]], ids=["alone", "fused"])
def test_windows_of_all_kinds_have_plans(
    name: str, type_: DataType, parts: dict[str, bool]
) -> None:
    assert plan_of(FusedConvolution(type_, *_SHAPES[name], **parts)).json


@pytest.mark.parametrize("type_", DataType)
def test_a_transposed_convolution_has_a_deterministic_plan(type_: DataType) -> None:
    sizes = ((1, 64, 14, 14), (64, 32, 3, 3), (1, 32, 28, 28))
    window = ((2, 2), (1, 1), (1, 1), (1, 1))

    plan = plan_of(FusedConvolution(type_, *sizes, *window, is_transposed=True))

    assert Numerics.NONDETERMINISTIC not in plan.notes


def test_a_wrong_shape_is_refused_with_the_reason() -> None:
    sizes = ((1, 64, 14, 14), (64, 64, 3, 3), (1, 64, 99, 14))

    with pytest.raises(BackendError, match=r"cuDNN 9\.19\.0 refuses CONVOLUTION_FORWARD: CUDNN"):
        plan_of(FusedConvolution(DataType.F32, *sizes, (1, 1), (1, 1), (1, 1), (1, 1)))


def test_a_missing_file_of_properties_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "/nowhere/h200.json")

    with pytest.raises(BackendError, match=f"{ENVIRONMENT_VARIABLE}.*/nowhere/h200.json"):
        plan_of(_convolution(DataType.F32))


def test_properties_that_are_none_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "gpu.json"
    file.write_text("{}")
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(file))

    with pytest.raises(BackendError, match=r"refuses .*DEVICE"):
        plan_of(_convolution(DataType.F32))


def test_the_doctor_names_the_version() -> None:
    backend = CudnnBackend()

    assert backend.unavailable() is None
    assert backend.describe() == f"cuDNN 9.19.0, {CUDNN.path()}"


def test_the_doctor_names_the_version_where_no_gpu_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT_VARIABLE)
    monkeypatch.setenv(DRIVER_VARIABLE, "/nowhere/libcuda.so.1")

    reason = CudnnBackend().unavailable()

    assert reason is not None
    assert re.search(rf"cuDNN 9\.19\.0 has no GPU.*/nowhere.*{ENVIRONMENT_VARIABLE}", reason)


def test_the_environment_of_the_backend_is_complete() -> None:
    names = (DRIVER_VARIABLE, CUDNN.environment, ENVIRONMENT_VARIABLE)
    assert CudnnBackend.environment == names


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CUDNN.environment, "/nowhere/libcudnn.so.9")

    reason = CudnnBackend().unavailable()

    assert reason is not None
    assert re.search("cuDNN is not installed.*/nowhere.*pip install nvidia-cudnn-cu13", reason)
