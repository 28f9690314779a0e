"""Whole models with cuBLASLt and generated kernels, on the recording driver."""

from __future__ import annotations

import ctypes

import pytest
from helpers.cuda.emulation import Record

import byoc_mlir
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_SMALL = {"mlp3": {}, "bert6": {"layers": 1}, "vit_tiny": {"image": 32, "layers": 1}}
_TARGETS = ("cublaslt", "cuda")


@pytest.mark.parametrize("name", _SMALL)
def test_a_network_agrees(gpu: Record, cublaslt: ctypes.CDLL, name: str) -> None:
    model = NETWORKS[name](**_SMALL[name])
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=_TARGETS, cache=False) as executable:
        found = executable.run(inputs)
        again = executable.run(inputs)

    assert_agrees(found, run_onnxruntime(model, inputs))
    assert_agrees(again, found, 0)
    rows = [row for row in executable.report().rows if row.op_type in ("MatMul", "Gemm")]
    assert {row.placement for row in rows} == {"cublaslt"}
    assert "cublasLtMatmul" in gpu.calls()
