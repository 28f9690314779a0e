"""Ops and composites that the backend claims, on the recording libraries."""

from __future__ import annotations

import ctypes

import pytest
from helpers.cuda.emulation import Record

from byoc_mlir.testing.conformance import run_conformance

_CLAIMS = ("nn.dense", "nn.matmul", "cublaslt.matmul_bias_relu")
"""Ops, and the longest composite for which the kit makes graphs: it knows no constants of GELU."""


@pytest.mark.parametrize("claim", _CLAIMS)
def test_a_claim_agrees_with_numpy(gpu: Record, cublaslt: ctypes.CDLL, claim: str) -> None:
    report = run_conformance("cublaslt", only=(claim,), networks={})

    assert report.passed, str(report)
    assert "cublasLtMatmul" in gpu.calls()
