"""The example backends and the template for new ones import public modules alone.

docs/first-backend.md lists these.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from package_imports import PACKAGE

_ROOT = PACKAGE.parent
_HEAD = "| module | has |\n| --- | --- |\n"
_TEMPLATE = PACKAGE / "tools/templates/backend/backend.py.template"
OUTSIDE = [*sorted((_ROOT / "examples/backends").rglob("*.py")), _TEMPLATE]


def _listed() -> dict[str, bool]:
    """The modules of the table, and whether modules inside of them are public, too."""
    page = (_ROOT / "docs/first-backend.md").read_text()
    rows = page.split(_HEAD)[1].split("\n\n")[0].splitlines()
    cells = [row.split("|")[1] for row in rows]
    return {re.findall("`(.+?)`", cell)[0]: "and its modules" in cell for cell in cells}


PUBLIC = _listed()


def _is_public(module: str) -> bool:
    return module in PUBLIC or any(
        module.startswith(f"{package}.") for package, has_modules in PUBLIC.items() if has_modules
    )


def _is_module(name: str) -> bool:
    path = _ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _modules(tree: ast.AST) -> Iterator[str]:
    """The modules of the package that a file imports, or imports names of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_module(alias.name))
        if isinstance(node, ast.ImportFrom) and _is_module(str(node.module)):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if _is_module(name) else str(node.module) for name in names)


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path.relative_to(_ROOT).as_posix())
def test_only_public_modules_are_imported(path: Path) -> None:
    tree = ast.parse(path.read_text().replace("@CLASS@", "Made"))
    assert not [module for module in _modules(tree) if not _is_public(module)]


def test_what_is_not_public_is_found() -> None:
    tree = ast.parse("from byoc_mlir.backends import Backend, registry\nimport byoc_mlir.abi")
    assert [module for module in _modules(tree) if not _is_public(module)] == [
        "byoc_mlir.backends.registry",
        "byoc_mlir.abi",
    ]


def test_all_examples_are_looked_at() -> None:
    names = {path.relative_to(_ROOT).parts[2] for path in OUTSIDE[:-1]}
    assert len(names) == 5


@pytest.mark.parametrize("module", PUBLIC)
def test_the_list_has_modules_that_exist(module: str) -> None:
    assert _is_module(module)
