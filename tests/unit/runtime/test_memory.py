"""Compiling, running and closing again and again leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[3] / "benchmarks" / "soak.py"


@pytest.mark.parametrize(
    ("model", "first", "cycles", "workers"),
    [("host", 20, 80, 1), ("dnnl", 10, 30, 1), ("symbolic", 4, 12, 1)],
)
def test_memory_does_not_grow(model: str, first: int, cycles: int, workers: int) -> None:
    arguments = ["--models", model, "--first", first, "--cycles", cycles]
    arguments += ["--workers", workers, "--runs", 2000, "--limit", 2.5]
    done = subprocess.run(
        [sys.executable, SOAK, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
