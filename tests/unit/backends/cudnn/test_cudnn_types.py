"""Element types of convolutions with cuDNN: `f16` models, and precisions of `f32` ones."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from helpers.cuda.emulation import Record
from helpers.models import parsed
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_TARGETS = ("cudnn", "cuda")


def _model(type_: str) -> ModelProto:
    return parsed(
        f"({type_}[1, 4, 9] x, {type_}[6, 2, 3] w, {type_}[6] b) => ({type_}[1, 6, 5] z)",
        "a = Conv <group = 2, strides = [2], pads = [1, 1]> (x, w, b) z = Relu (a)",
    )


def test_a_model_of_f16_keeps_its_type(gpu: Record, cudnn: ctypes.CDLL) -> None:
    model = _model("float16")
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=_TARGETS, cache=False) as executable:
        found = executable.run(inputs)
        (row,) = [row for row in executable.report().rows if row.op_type == "Conv"]

    assert row.placement == "cudnn"
    assert found["z"].dtype == np.float16
    wanted = run_onnxruntime(model, inputs)["z"]
    np.testing.assert_allclose(found["z"], wanted, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(("precision", "engine"), [("f32", 9), ("tf32", 7), ("f16", 9)])
def test_tensor_cores_are_used_for_f32_on_request(
    gpu: Record, cudnn: ctypes.CDLL, precision: str, engine: int
) -> None:
    model = _model("float")
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=_TARGETS, cache=False, precision=precision) as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        (row,) = [row for row in executable.report().rows if row.op_type == "Conv"]

    assert row.placement == "cudnn"
    assert row.implementation == f"engine {engine}"
