"""Times of stages and passes add up."""

from __future__ import annotations

import time

import pytest

from byoc_mlir.compiler.progress import Stages


def test_what_a_stage_does_outside_of_passes_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 13.0, 20.0, 25.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    stages = Stages()
    with stages.stage("import"):
        pass
    with stages.stage("lower"):
        stages.add_pass("bufferize", 1.5)
        stages.add_pass("bufferize", 0.5)
    assert stages.seconds == {"import": 3.0, "lower": 5.0}
    assert stages.pass_seconds == {"(import)": 3.0, "bufferize": 2.0, "(lower)": 3.0}
