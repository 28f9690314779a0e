"""The core names no backend, and no backend imports another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from package_imports import PACKAGE, imports, trees

from byoc_mlir.backends import backend_names

pytestmark = pytest.mark.xdist_group("package_imports")  # all of it is parsed once

BACKENDS = sorted(path.parent.name for path in (PACKAGE / "backends").glob("*/__init__.py"))
EXAMPLES = sorted(
    path.parent.name for path in (PACKAGE.parent / "examples/backends").glob("*/pyproject.toml")
)


def _backends_imported(file: str) -> set[str]:
    parts = [module.split(".") for module in imports()[file]]
    return {names[1] for names in parts if names[0] == "backends" and names[1:2]} & set(BACKENDS)


def _core() -> Iterator[str]:
    for file in imports():
        folder, *deeper = file.split("/")
        if folder != "testing" and not (folder == "backends" and deeper[0] in BACKENDS):
            yield file


def test_each_folder_is_a_backend() -> None:
    assert {*BACKENDS, *EXAMPLES} <= set(backend_names())
    assert {"dnnl", "reference"} <= set(BACKENDS)
    assert {"ccompiler", "examplejson"} <= set(EXAMPLES)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_imports_no_other(name: str) -> None:
    for file in imports():
        if file.startswith(f"backends/{name}/"):
            assert _backends_imported(file) <= {name}, file


def test_the_core_knows_no_backend() -> None:
    for file in _core():
        assert not _backends_imported(file), file
        nodes = ast.walk(trees()[file])
        texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
        assert not texts & {*BACKENDS, *EXAMPLES}, file
