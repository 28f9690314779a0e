"""The core names no backend, and no backend imports another one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import byoc_mlir
from byoc_mlir.backends import backend_names

PACKAGE = Path(byoc_mlir.__file__).parent
BACKENDS = sorted(path.parent.name for path in (PACKAGE / "backends").glob("*/__init__.py"))


def _backends_imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[:2] == ["byoc_mlir", "backends"] and parts[2:3] and parts[2] in BACKENDS:
                yield parts[2]


def _trees(folder: Path) -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text())


def test_each_folder_is_a_backend() -> None:
    assert set(BACKENDS) <= set(backend_names())
    assert {"ccompiler", "examplejson", "dnnl"} <= set(BACKENDS)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_imports_no_other(name: str) -> None:
    for path, tree in _trees(PACKAGE / "backends" / name):
        assert set(_backends_imported(tree)) <= {name}, path


def test_the_core_knows_no_backend() -> None:
    for path, tree in _trees(PACKAGE):
        folder, *deeper = path.relative_to(PACKAGE).parts
        if folder == "testing" or (folder == "backends" and deeper[0] in BACKENDS):
            continue
        assert not set(_backends_imported(tree)), path
        texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not texts & set(BACKENDS), path
