"""Shapes are read with `sizes_of` or `shape_of`: xDSL's `get_shape()` gives a number for `?`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping

from package_imports import PACKAGE

MOST: Mapping[str, int] = {
    "dialects": 11,  # the base, constants, and `host`, whose tensors are static
    "lowering": 75,  # works on modules whose sizes are numbers
    "backends": 8,
    "kernels": 1,
    "transforms": 1,
}
"""By folder: the calls that there are. They become fewer."""


def test_bare_shapes_become_fewer() -> None:
    found = Counter(
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "get_shape"
    )
    more = {folder: count for folder, count in found.items() if count > MOST.get(folder, 0)}
    assert not more, "use sizes_of, or shape_of where all sizes must be numbers"
