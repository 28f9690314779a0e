"""Files that never end, block, or take a parser for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import byoc_mlir
from byoc_mlir.backends import load_backend_module
from byoc_mlir.errors import ByocError, InvalidModelError, LimitExceededError
from byoc_mlir.tools.byoc_opt import main

STRAY = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0" = relay.nn.relu %x {strides = [1, 1], padding = [0, 0, 0, 0]} : (tensor<1x3x8x8xf32>) -> t
}
"""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.onnx"
    os.mkfifo(path)
    return path


def test_a_string_without_an_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stray.mlir"
    path.write_text(STRAY)
    code = f"import byoc_mlir; byoc_mlir.compile({str(path)!r})"  # a process can be ended
    run = [sys.executable, "-c", code]
    found = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert "InvalidModelError" in found.stderr
    assert "the string that begins in line 2 does not end there" in found.stderr
    assert main([str(path)]) == 1
    assert "begins in line 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["module {" * 40 + "}" * 40, '"a"() {b = ' + "[" * 40 + "]" * 40 + "} : () -> ()"]
)
def test_brackets_nested_too_deeply(tmp_path: Path, text: str) -> None:
    path = tmp_path / "deep.mlir"
    path.write_text(text)
    with pytest.raises(LimitExceededError, match=r"brackets in .*: 33, the limit is 32"):
        byoc_mlir.compile(path, targets=())


@pytest.mark.parametrize(
    "text",
    [
        'module { "a" }',
        "module { %0 = relay.nn.relu }",
        "module { func.func @main() -> tensor<99999999999999999999x4xf32> { } }",
        "module { func.func @main() { %0 = arith.constant 1.0 : tensor<4xf32> func.return } }",
        '// "\nmodule { func.func @main() { func.return } ',
        "\xff",
    ],
)
def test_malformed_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(text, encoding="latin-1")
    with pytest.raises((InvalidModelError, LimitExceededError)):
        byoc_mlir.compile(path, targets=())


def test_pipes(pipe: Path, tmp_path: Path) -> None:
    for call in (byoc_mlir.compile, byoc_mlir.load):
        with pytest.raises(ByocError, match="it is a pipe, accepted are regular files"):
            call(pipe)
    with pytest.raises(ByocError, match="it is a pipe"):
        byoc_mlir.compile(pipe, cache=tmp_path / "cache")
    backend = tmp_path / "backend.py"
    os.mkfifo(backend)
    with pytest.raises(ByocError, match="no backend file"):
        load_backend_module(str(backend))
    assert main([str(pipe)]) == 1
