"""The code in the documentation runs, block after block, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import byoc_mlir
from byoc_mlir import register_backend
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

DOCS = Path(__file__).parents[3] / "docs"
PAGES = (
    "first-backend.md",
    "codegen-native.md",
    "codegen-c.md",
    "codegen-blob.md",
    "custom-ops.md",
    "precision.md",
)

BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (?P<name>\w+\.py)\n")

RUN_ALL = """
import subprocess, sys
for path in sys.argv[1:]:
    text = open(path).read()
    if path.endswith(".sh"):
        subprocess.run(["sh", "-e", path], check=True)
    else:
        exec(compile(text, path, "exec"))
"""


@pytest.mark.parametrize("page", PAGES)
def test_all_code_runs(page: str, tmp_path: Path) -> None:
    """Python blocks run in one process, shell blocks between them; `# name.py` begins a file."""
    blocks: list[str] = []
    for match in BLOCK.finditer((DOCS / page).read_text()):
        language, code = match["language"], match["code"]
        if language not in ("python", "sh"):
            continue
        named = FILE.match(code)
        path = tmp_path / f"block{len(blocks)}.{'sh' if language == 'sh' else 'py'}"
        if named:
            path = tmp_path / named["name"]
        else:
            blocks.append(str(path))
        path.write_text(code)
    assert blocks
    result = subprocess.run(
        [sys.executable, "-c", RUN_ALL, *blocks],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | _pip_installs_into(tmp_path / "site"),
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_backend_in_the_readme_computes() -> None:
    section = (DOCS.parent / "README.md").read_text().split("## Bring a backend")[1]
    names: dict[str, Any] = {"__name__": "readme"}
    (code,) = [match["code"] for match in BLOCK.finditer(section) if match["language"] == "python"]
    exec(code, names)
    register_backend(names["MyNpu"])
    b = GraphBuilder("two", seed=0)
    b.output(b.relu(b.op("Neg", b.relu(b.input("x", [3, 5])))), "out", [3, 5])
    model = b.build()
    inputs = random_inputs(model)
    with byoc_mlir.compile(model, ("my_npu",)) as executable:
        assert executable.report().counts() == {"my_npu": 2, "host": 1, "removed": 1}
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 0)


def _pip_installs_into(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_TARGET": str(folder),
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the value of build isolation
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PYTHONPATH": str(folder),
    }
