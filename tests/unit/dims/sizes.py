"""Random sizes for property tests: an expression, and its value by plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

from byoc_mlir.dims import Size, ceildiv, floordiv, largest, smallest, symbol

NAMES = ("a", "b", "c")
Values = Mapping[str, int]


@dataclass(frozen=True)
class Expression:
    """Size, and the function that computes its value with integers."""

    size: Size
    value: Callable[[Values], int]


def _symbol(name: str) -> Expression:
    return Expression(symbol(name), lambda values: values[name])


def _number(number: int) -> Expression:
    return Expression(number, lambda values: number)


def _sum(one: Expression, two: Expression) -> Expression:
    return Expression(one.size + two.size, lambda values: one.value(values) + two.value(values))


def _difference(one: Expression, two: Expression) -> Expression:
    return Expression(one.size - two.size, lambda values: one.value(values) - two.value(values))


def _product(one: Expression, two: Expression) -> Expression:
    return Expression(one.size * two.size, lambda values: one.value(values) * two.value(values))


def _floor(one: Expression, divisor: int) -> Expression:
    return Expression(floordiv(one.size, divisor), lambda values: one.value(values) // divisor)


def _ceil(one: Expression, divisor: int) -> Expression:
    return Expression(ceildiv(one.size, divisor), lambda values: -(-one.value(values) // divisor))


def _mod(one: Expression, divisor: int) -> Expression:
    return Expression(one.size % divisor, lambda values: one.value(values) % divisor)


def _max(one: Expression, two: Expression) -> Expression:
    return Expression(
        largest(one.size, two.size), lambda values: max(one.value(values), two.value(values))
    )


def _min(one: Expression, two: Expression) -> Expression:
    return Expression(
        smallest(one.size, two.size), lambda values: min(one.value(values), two.value(values))
    )


LEAVES = st.sampled_from(NAMES).map(_symbol) | st.integers(-6, 6).map(_number)


def _rings(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of([st.builds(how, inner, inner) for how in (_sum, _difference, _product)])


def _all(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        _rings(inner),
        *[st.builds(how, inner, inner) for how in (_max, _min)],
        *[st.builds(how, inner, st.integers(1, 5)) for how in (_floor, _ceil, _mod)],
    )


POLYNOMIALS = st.recursive(LEAVES, _rings, max_leaves=5)
SIZES = st.recursive(LEAVES, _all, max_leaves=5)
VALUES = st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES})
