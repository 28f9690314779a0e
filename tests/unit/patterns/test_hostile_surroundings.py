"""Every pattern of every built-in table, with each of its inner values used outside once."""

from __future__ import annotations

import pytest
from instances import all_choices, instance

from byoc_mlir.backends import backend_names, get_backend
from byoc_mlir.patterns import CompositePattern, Pattern, all_matches, explain_match, match_pattern

TABLES = {
    name: list(get_backend(name).patterns())
    for name in backend_names()
    if get_backend(name).patterns()
}


def rows_by_root(rows: list[CompositePattern]) -> list[str]:
    return sorted({row.name.split("_")[0] for row in rows})


GROUPS = [(name, group) for name, rows in TABLES.items() for group in rows_by_root(rows)]


def patterns(table: str, group: str) -> list[Pattern]:
    return [row.pattern for row in TABLES[table] if row.name.split("_")[0] == group]


def test_there_are_tables():
    assert "dnnl" in TABLES
    assert len(TABLES["dnnl"]) > 200


@pytest.mark.parametrize(("table", "group"), GROUPS)
def test_no_inner_value_leaves(table: str, group: str):
    for pattern in patterns(table, group):
        for choices in all_choices(pattern):
            untouched = instance(pattern, choices)
            untouched.finish()
            match = match_pattern(pattern, untouched.ops[-1])
            assert match is not None
            assert set(match.ops) == set(untouched.ops)
            for position in range(len(untouched.inner_values)):
                for through_op in (False, True):
                    _assert_not_inside(pattern, choices, position, through_op)


def _assert_not_inside(pattern: Pattern, choices, position: int, through_op: bool) -> None:
    graph = instance(pattern, choices)
    tapped = graph.inner_values[position]
    graph.finish(tapped, through_op=through_op)
    root = graph.ops[-1]
    found = [match for match in all_matches(pattern, root) if tapped.owner in match.ops]
    assert found == [], f"{tapped.owner.name} is used outside"
    if next(all_matches(pattern, root), None) is None:
        assert "is also used outside of the match, by " in str(explain_match(pattern, root))
