"""Evaluation of sizes for given symbols."""

from __future__ import annotations

from collections.abc import Mapping

from byoc_mlir.dims.dim import Dim, Size, SizeFunction, Symbol, terms_of
from byoc_mlir.errors import UndecidedSizeError


def evaluated(size: Size, values: Mapping[str, int]) -> int:
    """Returns the value of a size for given symbols.

    Raises:
        UndecidedSizeError: a symbol has no value, or a divisor is 0.
    """
    if not isinstance(size, Dim):
        return size
    try:
        return _number(size, values)
    except KeyError:
        missing = ", ".join(sorted(symbols_of(size) - values.keys()))
        raise UndecidedSizeError(f"the size {size} needs values for {missing}") from None
    except ZeroDivisionError:
        raise UndecidedSizeError(f"a part of the size {size} is divided by 0") from None


def symbols_of(size: Size) -> frozenset[str]:
    """Returns the names of the symbols that the size depends on."""
    found: set[str] = set()
    for monomial, _ in terms_of(size):
        for item in monomial:
            if isinstance(item, Symbol):
                found.add(item.name)
            else:
                found.update(*map(symbols_of, item.arguments))
    return frozenset(found)


def _number(size: Dim, values: Mapping[str, int]) -> int:
    total = 0
    for monomial, factor in size.terms:
        for item in monomial:
            factor *= values[item.name] if isinstance(item, Symbol) else _called(item, values)
        total += factor
    return total


def _called(item: SizeFunction, values: Mapping[str, int]) -> int:
    numbers = [one if isinstance(one, int) else _number(one, values) for one in item.arguments]
    if item.kind == "floordiv":
        dividend, divisor = numbers
        return dividend // divisor
    return max(numbers) if item.kind == "max" else min(numbers)
