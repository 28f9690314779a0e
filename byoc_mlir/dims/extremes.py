"""The largest and the smallest of sizes, in one form; sizes with symbols replaced by others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from byoc_mlir.dims.bounds import at_least_zero
from byoc_mlir.dims.dim import (
    Atom,
    Call,
    Dim,
    Kind,
    Monomial,
    Size,
    Symbol,
    atom,
    common_factor,
    constant_part,
    divided,
    floordiv,
    size_of,
    symbol,
    terms_of,
)


def largest(*sizes: Size) -> Size:
    """The maximum; what is never larger than another argument is left out."""
    return _extreme("max", sizes)


def smallest(*sizes: Size) -> Size:
    """The minimum; what is never smaller than another argument is left out."""
    return _extreme("min", sizes)


def _extreme(kind: Kind, sizes: Sequence[Size]) -> Size:
    if len(set(sizes)) == 1:
        return sizes[0]
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) == len(sizes):
        return max(numbers) if kind == "max" else min(numbers)
    kept = _undominated(kind, dict.fromkeys(_flattened(kind, sizes)))
    if len(kept) == 1:
        return kept[0]
    common = size_of({m: factor for m, factor in _common_terms(kept).items() if m})
    kept = [size - common for size in kept]
    if _is_turned(kind, kept):  # the minimum of negated sizes is the negated maximum
        other: Kind = "min" if kind == "max" else "max"
        return common - _scaled(other, [-size for size in kept])
    return common + _scaled(kind, kept)


def _flattened(kind: Kind, sizes: Iterable[Size]) -> Iterable[Size]:
    """The sizes, the arguments of those that are such an extreme themselves in their place."""
    for size in sizes:
        terms = terms_of(size)
        calls = [
            monomial[0]
            for monomial, factor in terms
            if len(monomial) == 1 and _is_call(monomial[0], kind, factor)
        ]
        if len(calls) == 1:
            factor = dict(terms)[(calls[0],)]
            rest = size - size_of({(calls[0],): factor})
            assert isinstance(calls[0], Call)
            yield from _flattened(kind, [rest + item * factor for item in calls[0].arguments])
        else:
            yield size


def _is_call(item: Atom, kind: Kind, factor: int) -> bool:
    """Whether a factor of a function is an extreme of this kind; turned by a negative factor."""
    if not isinstance(item, Call) or item.kind == "floordiv":
        return False
    return (item.kind == kind) == (factor > 0)


def _undominated(kind: Kind, sizes: Iterable[Size]) -> list[Size]:
    kept: list[Size] = []
    for size in sorted(sizes, key=str):
        if any(_reaches(kind, other, size) for other in kept):
            continue
        kept = [other for other in kept if not _reaches(kind, size, other)]
        kept.append(size)
    return kept


def _reaches(kind: Kind, one: Size, two: Size) -> bool:
    return at_least_zero(one - two if kind == "max" else two - one)


def _common_terms(sizes: Sequence[Size]) -> dict[Monomial, int]:
    """The terms that all sizes have."""
    others = [dict(terms_of(size)) for size in sizes[1:]]
    return {
        monomial: factor
        for monomial, factor in terms_of(sizes[0])
        if all(other.get(monomial) == factor for other in others)
    }


def _is_turned(kind: Kind, sizes: Sequence[Size]) -> bool:
    """Whether the form is that of the negated sizes: one of both is, in any order."""
    varying = [size - constant_part(size) for size in sizes]
    total: Size = 0
    for size in varying:
        total = total + size
    if total != 0:
        return terms_of(total)[0][1] < 0
    one, other = sorted(map(str, varying)), sorted(str(-size) for size in varying)
    return kind == "min" if one == other else one < other


def _scaled(kind: Kind, sizes: Sequence[Size]) -> Size:
    """An extreme with the number of its first varying argument, and common factors, taken out."""
    varying = {size: size - constant_part(size) for size in sizes}
    shared = common_factor(varying.values())
    ordered = sorted(sizes, key=lambda size: str(divided(varying[size], shared)))
    number = next(constant_part(size) for size in ordered if isinstance(size, Dim))
    moved = [size - number for size in ordered]
    factor = common_factor(moved)
    arguments = sorted((divided(size, factor) for size in moved), key=_argument_order)
    return number + factor * atom(Call(kind, tuple(arguments)))


def _argument_order(size: Size) -> tuple[bool, str]:
    return isinstance(size, int), str(size)


def substituted(size: Size, values: Mapping[str, Size]) -> Size:
    """The size with other sizes in the place of symbols; what has no value stays."""
    return _replaced(size, lambda name: values.get(name, symbol(name)))


def _replaced(size: Size, value: Callable[[str], Size]) -> Size:
    total: Size = 0
    for monomial, factor in terms_of(size):
        product: Size = factor
        for item in monomial:
            product = product * _value_of(item, value)
        total = total + product
    return total


def _value_of(item: Atom, value: Callable[[str], Size]) -> Size:
    if isinstance(item, Symbol):
        return value(item.name)
    arguments = [_replaced(argument, value) for argument in item.arguments]
    if item.kind == "floordiv":
        return floordiv(*arguments)
    return _extreme(item.kind, arguments)
