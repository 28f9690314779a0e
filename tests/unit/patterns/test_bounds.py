"""Matching: searches that would not end, and deep patterns."""

from __future__ import annotations

import pytest
from small_graphs import Graph
from xdsl.ir import OpResult

from byoc_mlir.dialects.relay.elementwise import AbsOp, AddOp, ExpOp, MultiplyOp, TanhOp
from byoc_mlir.dialects.relay.nn import ReluOp
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns import Pattern, explain_match, is_op, match_pattern, pattern_text, wildcard
from byoc_mlir.patterns import matcher as search

relu, tanh = is_op("nn.relu"), is_op("tanh")


def sum_pattern(terms: int) -> Pattern:
    parts = [wildcard().optional(relu).optional(tanh) for _ in range(terms)]
    pattern = parts[0]
    for part in parts[1:]:
        pattern = pattern + part
    return pattern


def sum_of(g: Graph, terms: int) -> OpResult:
    total = g(TanhOp, g(ReluOp, g.args[0]))
    for _ in range(terms - 1):
        total = g(AddOp, total, g(TanhOp, g(ReluOp, g.args[0])))
    return total


def test_what_cannot_fit_is_not_tried_in_each_way_of_the_rest(monkeypatch: pytest.MonkeyPatch):
    g = Graph()
    out = g(MultiplyOp, g(ExpOp, sum_of(g, 14)), g(AbsOp, g.args[1]))
    g.finish(out)
    pattern = is_op("exp")(sum_pattern(14)) * is_op("sigmoid")(wildcard())
    monkeypatch.setattr(search, "MOST_STEPS", 2 * search.EASY_STEPS)
    assert match_pattern(pattern, out.owner) is None
    assert explain_match(pattern, out.owner) is not None


def test_a_match_is_found_after_the_first_steps():
    g = Graph()
    x, y = g.args
    total = sum_of(g, 9)
    out = g(MultiplyOp, g(ExpOp, total), g(AbsOp, g(ExpOp, y)))
    g.finish(out)
    last = is_op("abs")(is_op("sigmoid")(wildcard()) | is_op("exp")(wildcard().named("y")))
    match = match_pattern(is_op("exp")(sum_pattern(9)) * last, out.owner)
    assert match is not None
    assert match.inputs == (x, y)
    assert len(match.ops) == 9 * 2 + 8 + 4


def test_too_many_ways_are_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(search, "MOST_STEPS", 4 * search.EASY_STEPS)
    g = Graph()
    total = sum_of(g, 14)
    out = g(ExpOp, total)
    g.finish(out, total)  # no way is a match: a value leaves all of them
    pattern = is_op("exp")(sum_pattern(14))
    with pytest.raises(BackendError, match="in too many ways"):
        match_pattern(pattern, out.owner)
    assert explain_match(pattern, out.owner) is not None


def test_patterns_may_be_deep():
    g = Graph()
    pattern, value = relu(wildcard()), g(ReluOp, g.args[0])
    for _ in range(2999):
        pattern, value = relu(pattern), g(ReluOp, value)
    g.finish(value)
    match = match_pattern(pattern, value.owner)
    assert match is not None
    assert len(match.ops) == 3000
    assert pattern_text(pattern).endswith("…" + ")" * 100)


def test_alternatives_may_be_many():
    g = Graph()
    out = g(ReluOp, g.args[0])
    g.finish(out)
    pattern: Pattern = tanh(wildcard())
    for _ in range(3000):
        pattern = pattern | relu(wildcard())
    assert match_pattern(pattern, out.owner) is not None
    assert str(pattern).startswith("(tanh or nn.relu or nn.relu")
