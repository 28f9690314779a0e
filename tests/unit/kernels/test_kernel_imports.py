"""Kernels know dialects and memory, and nothing of those that use them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import byoc_mlir

_PACKAGE = Path(byoc_mlir.__file__).parent
_ALLOWED = {"abi", "dialects", "errors", "kernels", "tensors"}


def _imported(tree: ast.AST) -> Iterator[str]:
    """The parts of this package that a module imports, anywhere in it."""
    for node in ast.walk(tree):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        for module in modules:
            name, *parts = module.split(".")
            if name == "byoc_mlir":
                yield parts[0]


def test_kernels_import_dialects_only() -> None:
    for path in sorted((_PACKAGE / "kernels").rglob("*.py")):
        assert set(_imported(ast.parse(path.read_text()))) <= _ALLOWED, path
