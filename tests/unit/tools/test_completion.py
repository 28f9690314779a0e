"""The scripts that complete `byoc` in shells."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from byoc_mlir.tools.byoc import main


def _script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("byoc prof", ["profile"]),
        ("byoc run --precision b", ["bf16", "bf16x3"]),
        ("byoc profile --tra", ["--trace"]),
        ("byoc report --anno", ["--annotate"]),
        ("byoc run squee", ["squeezenet"]),
        ("byoc report model.o", ["model.onnx"]),
        ("byoc completion z", ["zsh"]),
        ("byoc verify --sav", ["--save"]),
    ],
)
def test_bash(
    line: str, found: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.onnx").touch()
    words = shlex.join(line.split())
    asked = (
        f'COMP_WORDS=({words}); COMP_CWORD={len(line.split()) - 1}; _byoc; echo "${{COMPREPLY[@]}}"'
    )
    text = f"{_script('bash', capsys)}\n{asked}"
    done = subprocess.run(
        ["bash", "-c", text], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == found
    assert done.stderr == ""


def test_zsh_uses_what_bash_does(capsys: pytest.CaptureFixture[str]) -> None:
    bash, zsh = _script("bash", capsys), _script("zsh", capsys)
    assert zsh.endswith(bash)
    assert "bashcompinit" in zsh


def test_fish(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _script("fish", capsys).splitlines()
    assert "complete -c byoc -n __fish_use_subcommand -f -a view" in lines
    head = "complete -c byoc -n '__fish_seen_subcommand_from run'"
    assert f"{head} -l precision -x -a 'f32 bf16 bf16x3 tf32 f16'" in lines
    assert f"{head} -l json" in lines
    assert all(line.startswith("complete -c byoc -n ") for line in lines)
