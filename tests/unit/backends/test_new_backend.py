"""Package that `byoc new-backend` writes: it works unchanged."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from byoc_mlir.errors import BackendError
from byoc_mlir.tools.byoc import main
from byoc_mlir.tools.commands.new_backend import new_backend

USE = """
import sys
from pathlib import Path
import numpy as np, pytest
import byoc_mlir
from byoc_mlir.backends import backend_names
from byoc_mlir.testing.networks import GraphBuilder

site, tests = map(Path, sys.argv[1:])
assert "card9" in backend_names()
assert "card9" not in sys.modules, "it is imported when it is asked for"
b = GraphBuilder("g", seed=0)
x = b.input("x", [3, 5])
b.output(b.op("Tanh", b.relu(b.add(x, b.normal((3, 5), 1.0)))), "out", [3, 5])
with byoc_mlir.compile(b.build(), targets=("card9",)) as executable:
    placed = {row.op_type: row.placement for row in executable.report()}
    assert placed.items() >= {"Add": "card9", "Relu": "card9", "Tanh": "host"}.items(), placed
assert Path(sys.modules["card9"].__file__).parent == site
sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", str(tests)]))
"""


def test_the_package_is_installed_found_offloads_and_conforms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-backend", "card9", "--into", str(tmp_path)]) == 0
    folder, site = tmp_path / "card9", tmp_path / "site"
    assert f"cd {folder}" in capsys.readouterr().out
    package = [*folder.rglob("*.py"), folder / "pyproject.toml"]
    assert len(package) == 3
    assert sum(len(path.read_text().splitlines()) for path in package) < 80
    _run("-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index",
         "--target", site, folder, cwd=tmp_path)  # fmt: skip
    printed = _run("-c", USE, site, folder / "tests", cwd=tmp_path, PYTHONPATH=str(site))
    for part in ("backend 'card9': passed", "nn.relu", "resnet18", "mnist", "1 passed"):
        assert part in printed


USE_DEVICE = """
import sys
from pathlib import Path
import pytest
from byoc_mlir.devices import device_names, get_device

site, tests = map(Path, sys.argv[1:])
assert "card9" in device_names()
assert get_device("card9").identity() == "card9 in software, driver 0.1"
assert Path(sys.modules["card9"].__file__).parent == site / "card9"
sys.exit(pytest.main(["-q", "-s", "-p", "no:cacheprovider", str(tests)]))
"""


def test_a_package_with_a_device_is_found_and_conforms(tmp_path: Path) -> None:
    assert main(["new-backend", "card9", "--device", "--into", str(tmp_path)]) == 0
    folder, site = tmp_path / "card9", tmp_path / "site"
    assert sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py")) <= 160
    _run("-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index",
         "--target", site, folder, cwd=tmp_path)  # fmt: skip
    printed = _run("-c", USE_DEVICE, site, folder / "tests", cwd=tmp_path, PYTHONPATH=str(site))
    for part in ("backend 'card9': passed", "nn.relu", "2 passed"):
        assert part in printed


def _run(*arguments: str | Path, cwd: Path, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_names_of_a_device_appear_everywhere(tmp_path: Path) -> None:
    folder = new_backend("tensor_card_2", tmp_path, device=True)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {
        "byoc_mlir.devices": {"tensor_card_2": "tensor_card_2.device:TensorCard2Device"},
        "byoc_mlir.backends": {"tensor_card_2": "tensor_card_2.backend:TensorCard2Backend"},
    }
    for path in folder.rglob("*.*"):
        assert "@" not in path.read_text().replace("@cache", ""), path


def test_names_appear_everywhere(tmp_path: Path) -> None:
    folder = new_backend("tensor_card_2", tmp_path)
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    entry_points = project["entry-points"]["byoc_mlir.backends"]
    assert entry_points == {"tensor_card_2": "tensor_card_2:TensorCard2Backend"}
    assert "class TensorCard2Backend(Backend):" in (folder / "tensor_card_2.py").read_text()
    for path in folder.rglob("*.*"):
        assert "@" not in path.read_text(), path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("My_npu", "identifier in lower case, such as my_npu; found 'My_npu'"),
        ("2npu", "identifier in lower case"),
        ("my-npu", "identifier in lower case"),
        ("../npu", "identifier in lower case"),
        ("", "identifier in lower case"),
        ("lambda", "identifier in lower case"),
        ("dnnl", "there is a backend 'dnnl' already"),
        ("numpy", "there is a module 'numpy' already"),
    ],
)
def test_bad_names_are_refused(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=said):
        new_backend(name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "card9").mkdir()
    with pytest.raises(BackendError, match="card9 exists already"):
        new_backend("card9", tmp_path)
    assert not list((tmp_path / "card9").iterdir())


def test_the_command_line_has_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-backend", "Bad Name", "--into", str(tmp_path)]) != 0
    error = capsys.readouterr().err
    assert "identifier in lower case" in error
    assert "Traceback" not in error
