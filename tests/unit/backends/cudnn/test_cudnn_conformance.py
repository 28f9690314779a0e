"""Convolutions that the backend claims, alone and in composites, on the recording cuDNN."""

from __future__ import annotations

import ctypes

import pytest
from helpers.cuda.emulation import Record

from byoc_mlir.backends.cudnn.partition import ANCHORS, patterns
from byoc_mlir.testing.conformance import run_conformance

_COMPOSITES = [row.name for row in patterns() if "conv2d" in row.name]
_CLAIMS = {"alone": [f"nn.{name}" for name in ANCHORS]} | {name: [name] for name in _COMPOSITES}


@pytest.mark.parametrize("claims", _CLAIMS.values(), ids=_CLAIMS)
def test_convolutions_agree_with_numpy(gpu: Record, cudnn: ctypes.CDLL, claims: list[str]) -> None:
    report = run_conformance("cudnn", only=claims, networks={})

    assert report.passed, str(report)
    assert "cudnnBackendExecute" in gpu.calls()
