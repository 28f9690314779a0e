"""Code in docs/artifacts.md, run block after block as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from test_c_programs import DOCS, run

import byoc_mlir

BLOCK = re.compile(r"^```(?P<language>python|c|sh)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_all_code_runs(tmp_path: Path) -> None:
    blocks = [(match["language"], match["code"]) for match in BLOCK.finditer(DOCS.read_text())]
    assert [language for language, _ in blocks] == ["python", "c", "sh"]
    for language, code in blocks:
        (tmp_path / f"main.{language}").write_text(code)
    for command in ([sys.executable, "main.python"], ["sh", "-e", "main.sh"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    array = np.random.default_rng(0).standard_normal((1, 64)).astype(np.float32)
    result = run(tmp_path / "main", array.tobytes())
    assert result.returncode == 0
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        expected = loaded.run({"input": array})["output"]
    np.testing.assert_array_equal(np.frombuffer(result.stdout, np.float32), expected.reshape(-1))
