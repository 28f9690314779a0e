"""Each op that the backend claims, on the recording driver: values, threads, memory."""

from __future__ import annotations

import pytest
from helpers.cuda.emulation import Record

from byoc_mlir.backends.cuda.rules import RULES
from byoc_mlir.testing.conformance import run_conformance

_GROUPS = [list(RULES)[first : first + 6] for first in range(0, len(RULES), 6)]

_WITHOUT_SAMPLE = ("power",)
"""Ops of whose samples none is accepted; `test_cuda_random.py` tests them."""


@pytest.mark.parametrize("ops", _GROUPS, ids=lambda ops: ops[0])
def test_kernels_agree_with_numpy(gpu: Record, ops: list[str]) -> None:
    report = run_conformance("cuda", only=ops, networks={}, known_untested=_WITHOUT_SAMPLE)

    assert report.passed, str(report)
    assert "cuLaunchKernel" in gpu.calls()
