"""Questions about sizes: proved answers need no guard, decided ones leave a guard."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from sizes import SIZES, VALUES, Expression, Values

from byoc_mlir.dims import (
    Facts,
    Guard,
    Shapes,
    Size,
    SymbolInfo,
    ceildiv,
    evaluated,
    floordiv,
    greatest,
    largest,
    proved_at_most,
    proved_same,
    smallest,
    symbol,
)
from byoc_mlir.errors import UndecidedSizeError

BATCH, SEQ = symbol("batch"), symbol("seq")
SYMBOLS = (SymbolInfo("batch", hint=4), SymbolInfo("seq", min=1, max=512, hint=128))


@given(SIZES, SIZES, VALUES)
@settings(max_examples=60)
def test_what_is_proved_is_true(one: Expression, two: Expression, values: Values) -> None:
    bounds = Facts().bounds
    same, at_most = (prove(one.size, two.size, bounds) for prove in (proved_same, proved_at_most))
    a, b = one.value(values), two.value(values)
    assert same in (None, a == b)
    assert at_most in (None, a <= b)


@pytest.mark.parametrize(
    ("one", "two", "answer"),
    [
        (0, SEQ, True),
        (1, SEQ, True),
        (SEQ, 512, True),
        (513, SEQ, False),
        (floordiv(SEQ, 2), SEQ, True),
        (ceildiv(SEQ, 2), SEQ, True),
        (SEQ, 2 * ceildiv(SEQ, 2), True),
        (smallest(SEQ, BATCH), SEQ, True),
        (SEQ, largest(SEQ, BATCH), True),
        (SEQ, BATCH, None),
        (BATCH, BATCH * SEQ, None),
    ],
)
def test_at_most(one: Size, two: Size, answer: bool | None) -> None:
    assert proved_at_most(one, two, Facts(SYMBOLS).bounds) is answer


def test_a_proof_records_nothing() -> None:
    shapes = Shapes(SYMBOLS)
    assert shapes.same(BATCH * SEQ, SEQ * BATCH)
    assert not shapes.same(SEQ, 0)
    assert not shapes.same(2 * BATCH, 2 * SEQ + 1)
    assert shapes.at_most(SEQ, 600)
    assert not shapes.guards


def test_bounds_are_those_of_the_symbols_that_are_asked_for() -> None:
    wide, narrow = Facts([SymbolInfo("seq")]), Facts(SYMBOLS)
    for _ in range(2):
        assert wide.bounds(SEQ + 1) == (1, math.inf)
        assert narrow.bounds(SEQ + 1) == (2, 513)


def test_a_decision_is_recorded_once() -> None:
    shapes = Shapes(SYMBOLS)
    shapes.reason = "Add_3"
    assert not shapes.same(SEQ, 1)
    assert not shapes.same(SEQ, 1)
    assert not shapes.at_most(SEQ, BATCH)
    assert [str(guard) for guard in shapes.guards] == ["seq != 1", "seq > batch"]
    assert {guard.reason for guard in shapes.guards} == {"Add_3"}
    fits, too_long = {"batch": 2, "seq": 7}, {"batch": 9, "seq": 7}
    assert all(guard.holds(fits) for guard in shapes.guards)
    assert not all(guard.holds(too_long) for guard in shapes.guards)


def test_what_is_decided_stays_so() -> None:
    shapes = Shapes(SYMBOLS, [Guard(SEQ, "==", BATCH)])
    assert shapes.same(BATCH, SEQ)
    assert shapes.surely_same(SEQ, BATCH)
    assert not shapes.surely_same(SEQ, 4)
    assert len(shapes.guards) == 1


def test_hints_record_nothing() -> None:
    shapes = Shapes(SYMBOLS)
    assert shapes.hint(BATCH * SEQ + 1) == 513
    assert not shapes.guards


def test_choices_of_speed_are_made_for_what_is_expected() -> None:
    shapes = Shapes([SymbolInfo("n", hint=2, expected=1)])
    n = symbol("n")
    assert shapes.hint(3 * n) == 3
    assert not shapes.same(n, 1)
    assert [str(guard) for guard in shapes.guards] == ["n != 1"]


def test_symbolic_sizes_are_compared_as_they_are_expected() -> None:
    symbols = [SymbolInfo("seq", hint=2, expected=1), SymbolInfo("past", hint=2, expected=0)]
    shapes = Shapes([*symbols, SymbolInfo("total", hint=2, expected=1)])
    past, total = symbol("past"), symbol("total")
    assert shapes.same(past + SEQ, total)
    assert not shapes.same(past, SEQ)
    assert not shapes.same(total, 1)
    assert shapes.hint(4 * past) == 4
    guards = [str(guard) for guard in shapes.guards]
    assert guards == ["past + seq == total", "past != seq", "total != 1"]


def test_facts_decide_nothing() -> None:
    facts = Facts(SYMBOLS, [Guard(SEQ, "<=", BATCH)])
    assert facts.at_most(SEQ, BATCH)
    with pytest.raises(UndecidedSizeError, match="whether seq == batch is not known"):
        facts.same(SEQ, BATCH)


def test_a_symbol_without_hint_decides_nothing() -> None:
    with pytest.raises(UndecidedSizeError, match="whether seq == other is not known"):
        Shapes(SYMBOLS).same(SEQ, symbol("other"))


@pytest.mark.parametrize(
    ("info", "message"),
    [
        (SymbolInfo("n", min=-1), "accepted is 0 <= min <= max"),
        (SymbolInfo("n", min=3, max=2), "accepted is 0 <= min <= max"),
        (SymbolInfo("n", hint=1), "not less than 2"),
        (SymbolInfo("n", max=8, hint=9), "accepted is a size in"),
        (SymbolInfo("n", hint=4, expected=5), "accepted is a size in [0, 4]"),
    ],
)
def test_contradictions(info: SymbolInfo, message: str) -> None:
    assert message in (info.contradiction() or "")


def test_a_symbol_may_be_one_number() -> None:
    assert SymbolInfo("n", max=1, hint=1).contradiction() is None


def test_what_a_guard_says_is_proved_from_then_on() -> None:
    shapes = Shapes(SYMBOLS)
    assert shapes.at_most(3, BATCH)
    assert not shapes.same(BATCH, 1)
    assert shapes.at_most(2, smallest(BATCH, 7))
    assert [str(guard) for guard in shapes.guards] == ["3 <= batch"]
    assert shapes.ranges["batch"] == (3, float("inf"))


def test_nothing_is_decided_by_a_symbol_that_a_function_binds() -> None:
    shapes = Shapes(SYMBOLS, bound=[SymbolInfo("keys", min=1, max=8, hint=4)])
    assert shapes.hint(symbol("keys") * 2) == 8
    assert shapes.at_most(symbol("keys"), 8)
    for question in (shapes.same, shapes.at_most):
        with pytest.raises(UndecidedSizeError):
            question(symbol("keys"), 4)
    assert not shapes.guards


@given(SIZES, VALUES)
@settings(max_examples=60)
def test_no_size_is_more_than_the_greatest(one: Expression, values: Values) -> None:
    name = sorted(values)[0]
    try:
        most = greatest(one.size, {name: (0, values[name])})
    except UndecidedSizeError:
        return
    for number in range(values[name] + 1):
        assert evaluated(most, values) >= evaluated(one.size, {**values, name: number})


@pytest.mark.parametrize(
    ("size", "most"),
    [
        (smallest(32 * SEQ, BATCH) * 4, 4 * BATCH),
        (BATCH * ceildiv(SEQ, 3), 3 * BATCH),
        (BATCH - SEQ, BATCH - 1),
        (largest(SEQ, BATCH), largest(9, BATCH)),
    ],
)
def test_the_greatest_of_sizes(size: Size, most: Size) -> None:
    high = float("inf") if size == smallest(32 * SEQ, BATCH) * 4 else 9
    assert greatest(size, {"seq": (1, high)}) == most
