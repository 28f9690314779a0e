"""Convolutions that the backend claims, alone and in composites, on the recording cuDNN."""

from __future__ import annotations

import ctypes

import pytest
from helpers.cuda.emulation import Record

from byoc_mlir.backends.cudnn.partition import ANCHORS, patterns
from byoc_mlir.testing.conformance import run_conformance

_CLAIMS = (*(f"nn.{name}" for name in ANCHORS), *(row.name for row in patterns()))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_agree_with_numpy(gpu: Record, cudnn: ctypes.CDLL, rank: int) -> None:
    claims = [name for name in _CLAIMS if f"conv{rank}d" in name]

    report = run_conformance("cudnn", only=claims, networks={})

    assert report.passed, str(report)
    assert "cudnnBackendExecute" in gpu.calls()
