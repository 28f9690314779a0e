"""Quick start: it runs, and prints the promised lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_quickstart_prints_the_answer_the_placement_and_the_time() -> None:
    command = [sys.executable, EXAMPLES / "quickstart.py"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "softmaxout_1: shape (1, 1000, 1, 1)" in result.stdout
    assert "Conv" in result.stdout
    assert "ms per run" in result.stdout
