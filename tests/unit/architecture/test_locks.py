"""All locks are open in a forked child: `byoc_mlir.locks` makes them."""

from __future__ import annotations

import ast

from package_imports import trees

_MAKERS = {"locks.py", "runtime/system/forks.py"}
_MODULES = ("threading", "functools")
_HELD = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore"}
"""Locks of `threading` that a child would wait for."""


def _names(tree: ast.Module) -> set[str]:
    """Returns the names that a module takes from `threading` and `functools`."""
    taken = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in _MODULES:
            taken |= {alias.name for alias in node.names}
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in _MODULES:
            taken.add(node.attr)
    return taken


def test_no_other_module_makes_locks_that_a_child_would_wait_for() -> None:
    found = {file: _names(tree) & (_HELD | {"cached_property"}) for file, tree in trees().items()}
    assert {file: names for file, names in found.items() if names and file not in _MAKERS} == {}
