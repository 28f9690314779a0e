"""Every pattern of every built-in table, with each of its inner values used outside once.

Patterns that differ in the name of an op only are tried once.
"""

from __future__ import annotations

from itertools import cycle

import pytest
from instances import all_choices, instance
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends import backend_names, get_backend
from byoc_mlir.patterns import (
    CompositePattern,
    Pattern,
    all_matches,
    explain_match,
    match_pattern,
    pattern_text,
)

BUILT_IN = [
    backend
    for backend in map(get_backend, backend_names())
    if type(backend).__module__.startswith("byoc_mlir.")
]
TABLES = {backend.name: list(backend.patterns()) for backend in BUILT_IN if backend.patterns()}


def rows_by_root(rows: list[CompositePattern]) -> list[str]:
    return sorted({row.name.split("_")[0] for row in rows})


GROUPS = [(name, group) for name, rows in TABLES.items() for group in rows_by_root(rows)]
ALIKE = {"dnnl.conv1d": "conv2d", "dnnl.conv3d": "conv2d", "dnnl.matmul": "dense"}
"""Groups of oneDNN's table whose patterns are those of another op, with their own name."""


def patterns(table: str, group: str) -> list[Pattern]:
    return [row.pattern for row in TABLES[table] if row.name.split("_")[0] == group]


def test_there_are_tables():
    assert "dnnl" in TABLES
    assert len(TABLES["dnnl"]) > 200


@pytest.mark.parametrize(("group", "other"), ALIKE.items())
def test_patterns_of_another_op_are_the_same(group: str, other: str):
    own = group.removeprefix("dnnl.")
    texts = {pattern_text(pattern).replace(own, other) for pattern in patterns("dnnl", group)}
    assert texts == {pattern_text(pattern) for pattern in patterns("dnnl", f"dnnl.{other}")}


@pytest.mark.parametrize(("table", "group"), [one for one in GROUPS if one[1] not in ALIKE])
def test_no_inner_value_leaves(table: str, group: str):
    for pattern in patterns(table, group):
        for choices in all_choices(pattern):
            graph = instance(pattern, choices)
            match = match_pattern(pattern, graph.ops[-1])
            assert match is not None
            assert set(match.ops) == set(graph.ops)
            ways = cycle((graph.returned_too, graph.read_too))
            for tapped, way in zip(graph.inner_values, ways, strict=False):
                with way(tapped):
                    _assert_not_inside(pattern, graph.ops[-1], tapped)


def _assert_not_inside(pattern: Pattern, root: Operation, tapped: SSAValue) -> None:
    assert isinstance(tapped.owner, Operation)
    found = list(all_matches(pattern, root))
    assert all(tapped.owner not in match.ops for match in found), f"{tapped.owner.name} leaves"
    if not found:
        assert "is also used outside of the match, by " in str(explain_match(pattern, root))
