"""`Dim`: one form for equal polynomials, right values for every size, text that reads back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import NAMES, POLYNOMIALS, SIZES, VALUES, Expression, Values

from byoc_mlir.dims import (
    Dim,
    Facts,
    Size,
    bounds,
    ceildiv,
    evaluated,
    floordiv,
    largest,
    overflow,
    parse_size,
    smallest,
    substituted,
    symbol,
    symbols_of,
)
from byoc_mlir.errors import UndecidedSizeError

A, B, C = map(symbol, NAMES)
POINTS: list[Values] = [
    {"a": a, "b": b, "c": c}
    for a, b, c in itertools.product((0, 1, 3, 10, 71), (0, 2, 7, 59), (0, 1, 5, 97))
]


@given(SIZES, VALUES)
@settings(max_examples=60)
def test_a_size_is_what_arithmetic_gives(expression: Expression, values: Values) -> None:
    assert evaluated(expression.size, values) == expression.value(values)


@given(POLYNOMIALS, POLYNOMIALS)
@settings(max_examples=60)
def test_equal_polynomials_have_one_form(one: Expression, two: Expression) -> None:
    equal = all(one.value(point) == two.value(point) for point in POINTS)
    assert (one.size == two.size) == equal
    assert one.size + two.size - two.size == one.size
    if equal:
        assert hash(one.size) == hash(two.size)


@given(SIZES, SIZES, SIZES)
@settings(max_examples=60)
def test_laws(one: Expression, two: Expression, three: Expression) -> None:
    a, b, c = one.size, two.size, three.size
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) * c == a * c + b * c
    assert (a + b) + c == a + (b + c)
    assert a - a == 0
    assert floordiv(a * 3, 3) == a
    assert floordiv(a + 5 * b, 5) == floordiv(a, 5) + b
    assert largest(a, b) == largest(b, a)
    assert largest(a, a) == a


@given(POLYNOMIALS, POLYNOMIALS)
@settings(max_examples=60)
def test_laws_of_extremes(one: Expression, two: Expression) -> None:
    a, b = one.size, two.size
    assert smallest(-a, -b) == -largest(a, b)
    assert largest(2 * a, 2 * b) == 2 * largest(a, b)
    assert largest(a + 7, b + 7) == largest(a, b) + 7


@given(POLYNOMIALS, POLYNOMIALS, POLYNOMIALS, st.integers(1, 5), VALUES)
@settings(max_examples=60)
def test_the_largest_and_the_smallest_of_two_are_their_sum(
    one: Expression, two: Expression, three: Expression, divisor: int, values: Values
) -> None:
    a, b, c = one.size, two.size, three.size
    largest_, smallest_ = largest(a, b), smallest(a, b)
    both = largest_ + smallest_
    assert both - smallest_ == largest_
    for factor in (1, -1, 3):
        found = floordiv(c * both * factor + A, divisor)
        plain = floordiv(c * (a + b) * factor + A, divisor)
        assert Facts().surely_same(found, plain)
        assert evaluated(found, values) == evaluated(plain, values)
    quotient = floordiv(c * both, divisor)
    assert floordiv(c * both + divisor * largest_, divisor) == quotient + largest_


def test_the_largest_of_a_sum_with_an_extreme_and_itself_is_the_sum() -> None:
    size = symbol("a") + largest(symbol("a"), symbol("b"))
    assert largest(size, size) == size


@given(SIZES)
@settings(max_examples=60)
def test_text_reads_back(expression: Expression) -> None:
    assert parse_size(str(expression.size)) == expression.size


@given(SIZES, VALUES)
@settings(max_examples=60)
def test_a_size_lies_within_its_bounds(expression: Expression, values: Values) -> None:
    low, high = bounds(expression.size, {name: (0, 9) for name in NAMES})
    assert low <= expression.value(values) <= high


def test_functions_in_functions_are_bounded_without_a_long_search() -> None:
    size: Size = A
    for step in range(12):
        size = largest(floordiv(size - step, 2), B - step)
    low, high = bounds(size - A, {"a": (0, 9), "b": (0, 9)})
    assert low <= evaluated(size - A, {"a": 7, "b": 3}) <= high


@given(SIZES, SIZES, VALUES)
@settings(max_examples=60)
def test_substitution_is_composition(outer: Expression, inner: Expression, values: Values) -> None:
    size = substituted(outer.size, {"a": largest(inner.size, 0)})
    at = {**values, "a": max(0, inner.value(values))}
    assert evaluated(size, values) == outer.value(at)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (A + B - A, "b"),
        (floordiv(A * B * 384, A * B), "384"),
        (floordiv(A * B * 384, B * 12), "32*a"),
        (floordiv((A + 2) * (B + 1), B + 1), "a + 2"),
        (floordiv(floordiv(A, 2) + 1, 3), "floordiv(a + 2, 6)"),
        (floordiv(A - 1, 2) + 1, "floordiv(a + 1, 2)"),
        (ceildiv(A, 2), "floordiv(a + 1, 2)"),
        (ceildiv(A, B), "-floordiv(-a, b)"),
        (-(-A // 2), "a - floordiv(a, 2)"),
        (A % 4, "a - 4*floordiv(a, 4)"),
        (largest(A, 0), "a"),
        (largest(A - 1, 0), "max(a, 1) - 1"),
        (floordiv(A - largest(A, 8) - smallest(A, 8), 3), "-3"),
        (floordiv(largest(A, 8) - smallest(A, 8), 2), "floordiv(a, 2) - min(a, 8) + 4"),
        (largest(A + 1, A + 3, B), "max(a, b - 3) + 3"),
        (smallest(A, A + B), "a"),
        (smallest(A, smallest(B, 512)), "min(a, b, 512)"),
        (symbol("batch size") + 1, '"batch size" + 1'),
        (symbol('x"[0]') * symbol("max"), '"max"*"x\\"[0]"'),
        (A * A - 2 * B + 1, "a*a - 2*b + 1"),
    ],
)
def test_forms(size: Size, text: str) -> None:
    assert str(size) == text
    assert parse_size(text) == size


def test_a_number_is_no_dim() -> None:
    assert A - A + 3 == 3
    assert isinstance(A - A + 3, int)
    assert A != 1
    assert len({A, symbol("a"), B}) == 2


def test_symbols_of() -> None:
    assert symbols_of(largest(A * B, floordiv(C, 2))) == {"a", "b", "c"}
    assert symbols_of(4) == frozenset()


@pytest.mark.parametrize(
    "ask", [bool, int, range, A.__lt__, A.__le__, A.__gt__, A.__ge__], ids=lambda ask: ask.__name__
)
def test_what_a_form_cannot_answer_is_refused(ask: Callable[[Size], object]) -> None:
    with pytest.raises(UndecidedSizeError, match="the size a is symbolic"):
        ask(A)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a number"),
        ("a +", "expected a number"),
        ("max(a, b", "expected '\\)'"),
        ("power(a, 2)", "'power' of 2 sizes is no size"),
        ("floordiv(a)", "'floordiv' of 1 sizes"),
        ("floordiv(a, 0)", "divided by 0"),
        ("a b", "'b' is no part"),
    ],
)
def test_what_is_no_size(text: str, message: str) -> None:
    with pytest.raises(UndecidedSizeError, match=message):
        parse_size(text)


def test_what_cannot_be_evaluated() -> None:
    assert isinstance(A + B, Dim)
    with pytest.raises(UndecidedSizeError, match="needs values for b"):
        evaluated(A + B, {"a": 1})
    with pytest.raises(UndecidedSizeError, match="divided by 0"):
        evaluated(floordiv(A, B), {"a": 1, "b": 0})


def _halves_of_three(size: Size) -> Size:
    return smallest(3 * size - 1, floordiv(2 * size + 5, 3)) * size


@pytest.mark.parametrize(
    "grow",
    [
        lambda size: size * size,
        lambda size: size * (size + B),
        lambda size: 3 * size,
        _halves_of_three,
    ],
    ids=["powers", "sums", "numbers", "functions"],
)
def test_sizes_that_grow_without_end_are_refused(grow: Callable[[Size], Size]) -> None:
    with pytest.raises(UndecidedSizeError):
        reduce(lambda size, _: grow(size), range(100), A + 1)


@pytest.mark.parametrize(
    ("size", "inside", "outside"),
    [
        (A * B * C * 8, {"a": 2**20, "b": 2**20, "c": 2**18}, {"a": 2**20, "b": 2**20, "c": 2**20}),
        (floordiv(A * A * A, B + 1), {"a": 2**20, "b": 3, "c": 0}, {"a": 2**21, "b": 3, "c": 0}),
        (smallest(A * B * C, 7), {"a": 9, "b": 9, "c": 9}, dict.fromkeys("abc", 2**21)),
    ],
)
def test_sizes_that_have_no_room_while_they_are_computed(
    size: Size, inside: Values, outside: Values
) -> None:
    more = overflow([size, A + 1], {})
    assert evaluated(more, inside) == 0
    assert evaluated(more, outside) >= 2**62
    assert overflow([A, A * B, A + 2**31], {}) == 0
    with pytest.raises(UndecidedSizeError, match="overflows"):
        overflow([floordiv(A + 2**63 - 2, 2**63 - 1)], {})
