"""Imports between the modules of the package."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import byoc_mlir

PACKAGE = Path(byoc_mlir.__file__).parent


@cache
def trees() -> Mapping[str, ast.Module]:
    """Returns the syntax tree of each file, by names such as `backends/dnnl/library/calls.py`."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text())
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def imports() -> Mapping[str, tuple[str, ...]]:
    """Returns the imports of each file, such as `backends.base.Backend` of
    `backends/dnnl/library/calls.py`.

    Imports inside of functions count, imports for type checkers do not. The package itself is `""`.
    """
    return {file: tuple(_imported(tree)) for file, tree in trees().items()}


def _imported(tree: ast.AST) -> Iterator[str]:
    for module in _modules(tree):
        name, _, rest = module.partition(".")
        if name == PACKAGE.name:
            yield rest


def _modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.expr):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        assert not node.level, f"line {node.lineno}: a relative import"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from _modules(child)
