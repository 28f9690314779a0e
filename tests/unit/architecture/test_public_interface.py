"""Example backends, the template for new ones and importers of rare ops use public modules alone.

docs/stability.md lists these for backends, docs/custom-ops.md for importers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_HEAD = "| module | has |\n| --- | --- |\n"
_TEMPLATES = sorted((_ROOT / "byoc_mlir/tools/templates").rglob("*.py.template"))
_BACKENDS = "docs/stability.md"
USERS: Mapping[Path, str] = {
    **dict.fromkeys(sorted((_ROOT / "examples/backends").rglob("*.py")), _BACKENDS),
    **dict.fromkeys(_TEMPLATES, _BACKENDS),
    **dict.fromkeys(sorted((_ROOT / "byoc_mlir/extra_ops").rglob("*.py")), "docs/custom-ops.md"),
}
"""Files that may only use the public interface, and the page that lists it for them."""


def _listed(page: str) -> Mapping[str, bool]:
    """Returns the modules of the page's table, `True` if their inner modules are public, too."""
    rows = (_ROOT / page).read_text().split(_HEAD)[1].split("\n\n")[0].splitlines()
    cells = [row.split("|")[1] for row in rows]
    return {re.findall("`(.+?)`", cell)[0]: "and its modules" in cell for cell in cells}


PUBLIC = {page: _listed(page) for page in dict.fromkeys(USERS.values())}


def _is_public(module: str, page: str) -> bool:
    return module in PUBLIC[page] or any(
        module.startswith(f"{package}.")
        for package, has_modules in PUBLIC[page].items()
        if has_modules
    )


def _is_module(name: str) -> bool:
    path = _ROOT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def _modules(tree: ast.AST) -> Iterator[str]:
    """Yields the modules of the package that a file imports, or imports names of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _is_module(alias.name))
        if isinstance(node, ast.ImportFrom) and _is_module(str(node.module)):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if _is_module(name) else str(node.module) for name in names)


@pytest.mark.parametrize("path", USERS, ids=lambda path: path.relative_to(_ROOT).as_posix())
def test_only_public_modules_are_imported(path: Path) -> None:
    tree = ast.parse(re.sub("@[A-Z]+@", "made", path.read_text()))
    assert not [module for module in _modules(tree) if not _is_public(module, USERS[path])]


def test_what_is_not_public_is_found() -> None:
    tree = ast.parse("from byoc_mlir.backends import Backend, registry\nimport byoc_mlir.abi")
    assert [module for module in _modules(tree) if not _is_public(module, _BACKENDS)] == [
        "byoc_mlir.backends.registry",
        "byoc_mlir.abi",
    ]


def test_all_examples_are_looked_at() -> None:
    examples = [path for path in USERS if "examples" in path.parts]
    assert len({path.relative_to(_ROOT).parts[2] for path in examples}) == 6


@pytest.mark.parametrize("module", [module for listed in PUBLIC.values() for module in listed])
def test_the_lists_have_modules_that_exist(module: str) -> None:
    assert _is_module(module)
