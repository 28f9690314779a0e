"""Whole models with cuDNN and generated kernels, on the recording driver."""

from __future__ import annotations

import ctypes

import pytest
from helpers.cuda.emulation import Record

import byoc_mlir
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_SMALL = {
    "mnist": {},
    "resnet18": {"image": 32},
    "mobilenet_v2": {"image": 32},
    "squeezenet": {"image": 32},
    "shufflenet": {"image": 32},
    "unet": {"image": 32},
}
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
