"""Reads of shapes by `sizes_of` or `shape_of`, since xDSL's `get_shape()` returns a number for
`?`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping

import pytest
from package_imports import trees

pytestmark = pytest.mark.xdist_group("package_imports")  # all of it is parsed once

MOST: Mapping[str, int] = {
    "dialects": 11,  # the base, constants, and `host`, whose tensors are static
    "lowering": 75,  # works on modules whose sizes are numbers
    "backends": 8,
    "kernels": 1,
    "transforms": 1,
}
"""Maximum number of calls of `get_shape()` by folder, to be reduced."""


def test_bare_shapes_become_fewer() -> None:
    found = Counter(
        file.partition("/")[0]
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "get_shape"
    )
    more = {folder: count for folder, count in found.items() if count > MOST.get(folder, 0)}
    assert not more, "use sizes_of, or shape_of where all sizes must be numbers"
