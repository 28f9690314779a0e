"""Progress: times of stages and passes add up; slow ones are shown on terminals only."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

import pytest

from byoc_mlir import progress as shown_work
from byoc_mlir.compiler.build import Stages
from byoc_mlir.progress import shown


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


_LONG = """
from byoc_mlir import progress
progress.SHOW_AFTER_SECONDS = 0.01
with progress.shown("outer"):
    input()
    with progress.shown("inner"):
        input()
print("done")
"""


def test_one_line_on_a_terminal() -> None:
    terminal, end = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    command, pipe = [sys.executable, "-c", _LONG], subprocess.PIPE
    with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=end) as run:
        assert run.stdin is not None
        for text in (b"outer", b"inner"):
            _wait_for(text, terminal)
            run.stdin.write(b"\n")
            run.stdin.flush()
        printed, _ = run.communicate()
    os.close(end)
    os.close(terminal)
    assert printed == b"done\n"


def _wait_for(text: bytes, terminal: int) -> None:
    """Reads the terminal until it shows a text."""
    found = b""
    while text not in found:
        ready, _, _ = select.select([terminal], [], [], 120)
        assert ready, found
        found += os.read(terminal, 1 << 12)


def test_nothing_is_shown_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shown_work, "SHOW_AFTER_SECONDS", 0.0)
    with shown("work"), Stages().stage("import"):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")
