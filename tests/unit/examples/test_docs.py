"""Code in the documentation, run block after block as it stands there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest
from docs_pages import (
    ELSEWHERE,
    GIVEN,
    MODEL,
    NOT_TRIED,
    PARSED,
    READ,
    ROOT,
    RUN,
    VALUES,
    Block,
    blocks,
)

from byoc_mlir.testing.forked import run_forked
from byoc_mlir.tools.byoc_opt import main as byoc_opt

FILE = re.compile(r"# (?P<name>\w+\.py)\n")

RUN_ALL = """
import os, shlex, subprocess, sys
_, folder, site, *paths = sys.argv
os.chdir(folder)
sys.path[:0] = [folder, site]
from byoc_mlir.tools import byoc, byoc_opt
commands = {"byoc": byoc.main, "byoc-opt": byoc_opt.main}

def run(path):
    lines = [line for line in open(path) if line.strip()]
    if any(line.split()[0] not in commands for line in lines):
        subprocess.run(["sh", "-e", path], check=True)
        return
    for line in lines:  # here, since a process takes a second to start
        line, _, otherwise = line.partition(" || ")
        words = shlex.split(line, comments=True)
        failed = commands[words[0]](words[1:])
        assert failed == bool(otherwise), line

for path in paths:
    if path.endswith(".sh"):
        run(path)
    else:
        exec(compile(open(path).read(), path, "exec"))
"""

BLOCKS = [block for block in blocks() if block.page not in ELSEWHERE]
TRIED = [block for block in BLOCKS if block.reason is None]
RUN_BY_PAGE = {
    page: list(found)
    for page, found in groupby((one for one in TRIED if one.language in RUN), lambda one: one.page)
}


@pytest.mark.parametrize("page", RUN_BY_PAGE)
def test_all_code_runs(page: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Checks Python blocks in one fork, with the shell blocks between them; `# name.py` begins a
    file.
    """
    cache = tmp_path_factory.getbasetemp() / "cache"  # calibration of the machine are measured once
    given = tmp_path / "given.py"
    given.write_text(MODEL + GIVEN.get(page, ""))
    site = tmp_path / "site"
    site.mkdir()  # Python remembers folders that are not there
    paths = [str(path) for path in (tmp_path, site, given, *_written(RUN_BY_PAGE[page], tmp_path))]
    caching = {"BYOC_CACHE": "on", "BYOC_CACHE_DIR": str(cache)}
    run_forked(RUN_ALL, *paths, environment=_pip_installs_into(site) | caching)


def _written(run: Sequence[Block], folder: Path) -> list[Path]:
    """Writes the files of blocks, and returns the files to run."""
    paths: list[Path] = []
    for number, block in enumerate(run):
        named = FILE.match(block.code) if block.language == "python" else None
        if named is None:
            paths.append(folder / f"block{number}.{'py' if block.language == 'python' else 'sh'}")
        code = _commands(block.code) if block.language == "console" else block.code
        (folder / named["name"] if named else paths[-1]).write_text(code)
    return paths


def _commands(code: str) -> str:
    """Returns the commands typed in a terminal session."""
    return "\n".join(line[2:] for line in code.splitlines() if line.startswith("$ "))


@pytest.mark.parametrize(
    "block",
    [block for block in TRIED if block.language in PARSED],
    ids=lambda block: f"{block.page}-{block.code.split()[2]}",
)
def test_all_ir_is_valid(block: Block, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = next((v for start, v in VALUES.items() if block.code.startswith(start)), None)
    whole = block.code if values is None else _function(values, block.code)
    path = tmp_path / "block.mlir"
    path.write_text(whole)
    assert byoc_opt([str(path)]) == 0, capsys.readouterr().err


def _function(values: str, code: str) -> str:
    """Returns a function with this body, and declarations of the functions that it calls."""
    calls = re.findall(r"func\.call (@\w+)\(.*?\)\s*: (\(.*?\) -> \(.*?\))", code)
    declared = "".join(f"func.func private {name}{type_}\n" for name, type_ in calls)
    return f"{declared}func.func @given({values}) {{\n{code}func.return\n}}\n"


def test_every_block_is_of_a_known_language() -> None:
    known = {*RUN, *PARSED, *READ}
    assert not [block for block in BLOCKS if block.language not in known]


def test_the_lists_have_nothing_else() -> None:
    for page, start in NOT_TRIED:
        assert any(block.is_at(page, start) for block in BLOCKS), start
    for start in VALUES:
        assert any(block.code.startswith(start) for block in BLOCKS), start
    for page, test in ELSEWHERE.items():
        assert f"{page}.md" in (ROOT / test).read_text()
    assert {block.page for block in BLOCKS} >= GIVEN.keys()


def _pip_installs_into(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_TARGET": str(folder),
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the value of build isolation
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
