"""`Dim`: a symbolic size as a canonical sum of products of symbols, `floordiv`, `max` and `min`.

Equality and hash compare this form, and record nothing. A question that the form cannot answer
(`<`, a truth value, a plain integer) is an error: use `Shapes` instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn, TypeAlias

from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.locks import cached_property

Kind: TypeAlias = Literal["floordiv", "max", "min"]

MOST_PARTS, MOST_NESTED, MOST_NUMBER = 512, 32, 1 << 64
"""Limits of a size: its symbols and functions, their nesting, and its constants.

Computed shapes can double a size at each node, and the time of comparisons grows with sizes.
"""

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
_FUNCTIONS = frozenset({"ceildiv", "floordiv", "max", "min", "mod"})


@dataclass(frozen=True)
class Symbol:
    """Named size that the call determines: an integer of 0 or more."""

    name: str

    @cached_property
    def key(self) -> str:
        """Returns the symbol's text and sort key; quoted if the name is no identifier."""
        if _BARE.fullmatch(self.name) and self.name not in _FUNCTIONS:
            return self.name
        escaped = self.name.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


@dataclass(frozen=True)
class SizeFunction:
    """Function of sizes that has no simpler form."""

    kind: Kind
    arguments: tuple[Size, ...]

    @cached_property
    def extent(self) -> tuple[int, int]:
        """Returns the number of symbols and functions, itself included, and their nesting."""
        inner = [size.extent for size in self.arguments if isinstance(size, Dim)]
        deepest = max((depth for _, depth in inner), default=0)
        return 1 + sum(parts for parts, _ in inner), 1 + deepest

    @cached_property
    def key(self) -> str:
        """Returns the function's text, which is also its sort key."""
        return f"{self.kind}({', '.join(map(str, self.arguments))})"


Atom: TypeAlias = Symbol | SizeFunction
Monomial: TypeAlias = tuple[Atom, ...]
"""Product: atoms in the order of their keys, repeated for powers; an empty one is 1."""


@dataclass(frozen=True, eq=False)
class Dim:
    """Size that depends on symbols: a sum of monomials with integer coefficients.

    Results of arithmetic are plain integers where no symbol is left, so a `Dim` never equals one.
    """

    terms: tuple[tuple[Monomial, int], ...]
    """Terms in the order in which they are printed, without coefficients of 0."""

    def __post_init__(self) -> None:
        parts, depth = self.extent
        if parts > MOST_PARTS or depth > MOST_NESTED or self._most >= MOST_NUMBER:
            raise UndecidedSizeError(
                f"a size of {parts} symbols and functions, nested {depth} deep; accepted are"
                f" {MOST_PARTS} and {MOST_NESTED}, and numbers below 2^64"
            )

    @property
    def _most(self) -> int:
        """Returns the largest absolute value of its constants."""
        calls = (item for term, _ in self.terms for item in term if isinstance(item, SizeFunction))
        inner = (size for call in calls for size in call.arguments if isinstance(size, int))
        return max(map(abs, (*(factor for _, factor in self.terms), *inner)))

    @cached_property
    def extent(self) -> tuple[int, int]:
        """Returns the number of symbols and functions, and the nesting of functions."""
        items = [item for monomial, _ in self.terms for item in monomial]
        inner = [item.extent for item in items if isinstance(item, SizeFunction)]
        parts = len(items) - len(inner) + sum(parts for parts, _ in inner)
        return parts, max((depth for _, depth in inner), default=0)

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dim):
            return False
        return self is other or (self._hash == other._hash and self.terms == other.terms)

    def __add__(self, other: Size) -> Size:
        return _sum([(self, 1), (other, 1)])

    __radd__ = __add__

    def __sub__(self, other: Size) -> Size:
        return _sum([(self, 1), (other, -1)])

    def __rsub__(self, other: Size) -> Size:
        return _sum([(other, 1), (self, -1)])

    def __neg__(self) -> Size:
        return _sum([(self, -1)])

    def __mul__(self, other: Size) -> Size:
        if isinstance(other, Dim) and len(self.terms) * len(other.terms) > MOST_PARTS:
            raise UndecidedSizeError(f"a size of more than {MOST_PARTS} terms")
        total: dict[Monomial, int] = {}
        for one, factor in self.terms:
            for two, other_factor in terms_of(other):
                product = _product(one, two)
                total[product] = total.get(product, 0) + factor * other_factor
        return size_of(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return floordiv(self, other)

    def __rfloordiv__(self, other: Size) -> Size:
        return floordiv(other, self)

    def __mod__(self, other: Size) -> Size:
        return self - other * floordiv(self, other)

    def __rmod__(self, other: Size) -> Size:
        return other - self * floordiv(other, self)

    def __str__(self) -> str:
        return "".join(
            _term_text(monomial, factor, first=not place)
            for place, (monomial, factor) in enumerate(self.terms)
        )

    __repr__ = __str__

    def _refuse(self, what: str) -> NoReturn:
        raise UndecidedSizeError(
            f"the size {self} is symbolic, but {what} is asked for; only a number decides it"
        )

    def __bool__(self) -> bool:
        self._refuse("whether it is 0")

    def __index__(self) -> int:
        self._refuse("a number")

    def __lt__(self, other: object) -> bool:
        self._refuse(f"whether it is less than {other}")

    def __le__(self, other: object) -> bool:
        self._refuse(f"whether it is at most {other}")

    def __gt__(self, other: object) -> bool:
        self._refuse(f"whether it is more than {other}")

    def __ge__(self, other: object) -> bool:
        self._refuse(f"whether it is at least {other}")


Size: TypeAlias = int | Dim


def symbol_of(size: Dim) -> str | None:
    """Returns the name of a size that is a single symbol; otherwise `None`."""
    ((monomial, factor), *others) = size.terms
    if others or factor != 1 or len(monomial) != 1:
        return None
    (item,) = monomial
    return item.name if isinstance(item, Symbol) else None


def symbol(name: str) -> Dim:
    """Returns the size that `name` stands for."""
    return Dim((((Symbol(name),), 1),))


def atom(value: Atom) -> Dim:
    """Returns the size that consists of one atom."""
    return Dim((((value,), 1),))


def terms_of(size: Size) -> tuple[tuple[Monomial, int], ...]:
    """Returns the terms of any size; a number has one without atoms, 0 has none."""
    if isinstance(size, Dim):
        return size.terms
    return (((), size),) if size else ()


def size_of(terms: Mapping[Monomial, int]) -> Size:
    """Returns the size with these terms."""
    kept = [(monomial, factor) for monomial, factor in terms.items() if factor]
    if not kept:
        return 0
    if len(kept) == 1 and not kept[0][0]:
        return kept[0][1]
    return Dim(tuple(sorted(kept, key=_order)))


def constant_part(size: Size) -> int:
    """Returns the constant term."""
    last = terms_of(size)[-1:]  # numbers are ordered last
    return last[0][1] if last and not last[0][0] else 0


def common_factor(sizes: Iterable[Size]) -> int:
    """Returns the greatest common divisor of all coefficients; 0 if all sizes are 0."""
    return math.gcd(*(factor for size in sizes for _, factor in terms_of(size)))


def divided(size: Size, divisor: int) -> Size:
    """Returns a size divided by `divisor`, which divides all coefficients."""
    return size_of({monomial: factor // divisor for monomial, factor in terms_of(size)})


def pair_of(size: Size) -> tuple[Size, Size, int] | None:
    """Returns the first `max(a, b) + min(a, b)` in a sum, then `a + b`, and their coefficient.

    Both are multiplied by the other atoms of the terms. `None` if there is no such pair.
    """
    terms = dict(terms_of(size))
    for monomial, factor in terms.items():
        for item in monomial:
            if not isinstance(item, SizeFunction) or item.kind != "max" or len(item.arguments) != 2:
                continue
            others = _without(monomial, (item,)) or ()
            smallest = _product(others, (SizeFunction("min", item.arguments),))
            if terms.get(smallest) == factor:
                one, two = item.arguments
                pair = size_of({monomial: 1, smallest: 1})
                return pair, size_of({others: 1}) * (one + two), factor
    return None


def ceildiv(dividend: Size, divisor: Size) -> Size:
    """Returns the quotient, rounded up."""
    if isinstance(divisor, int) and divisor > 0:
        return floordiv(dividend + (divisor - 1), divisor)
    return -floordiv(-dividend, divisor)


def floordiv(dividend: Size, divisor: Size) -> Size:
    """Returns the quotient, rounded down; terms that divide without remainder leave the function.

    Evaluating it fails where the divisor is 0.

    Raises:
        UndecidedSizeError: the divisor is the number 0.
    """
    if divisor == 0:
        raise UndecidedSizeError(f"the size {dividend} is divided by 0")
    if isinstance(divisor, Dim):
        return _divided_by_dim(dividend, divisor)
    if isinstance(dividend, int):
        return dividend // divisor
    if divisor < 0:
        return floordiv(-dividend, -divisor)
    whole = size_of({monomial: factor // divisor for monomial, factor in dividend.terms})
    rest = size_of({monomial: factor % divisor for monomial, factor in dividend.terms})
    found = pair_of(rest)
    if found is None:
        return whole + _rest_divided(rest, divisor)
    pair, total, factor = found
    times = int(2 * factor > divisor)  # 4 * pair is 5 * pair - pair
    rest = rest - factor * pair + (factor - times * divisor) * total
    return whole + times * pair + floordiv(rest, divisor)


def _rest_divided(rest: Size, divisor: int) -> Size:
    """Returns `floordiv` of a size with coefficients in `[0, divisor)`."""
    if isinstance(rest, int):
        return 0
    number = constant_part(rest)
    varying = rest - number
    common = math.gcd(common_factor([varying]), divisor)
    varying, number, divisor = divided(varying, common), number // common, divisor // common
    if divisor == 1:
        return varying + number
    inner = _only_quotient(varying)
    if inner is not None:  # (x // c + k) // d is (x + k * c) // (c * d)
        dividend, by = inner
        return floordiv(dividend + number * by, by * divisor)
    return atom(SizeFunction("floordiv", (varying + number, divisor)))


def _only_quotient(size: Size) -> tuple[Size, int] | None:
    """Returns dividend and divisor of a size that is a quotient by a number; otherwise `None`."""
    terms = terms_of(size)
    if len(terms) != 1 or terms[0][1] != 1 or len(terms[0][0]) != 1:
        return None
    only = terms[0][0][0]
    if not isinstance(only, SizeFunction) or only.kind != "floordiv":
        return None
    dividend, divisor = only.arguments
    return (dividend, divisor) if isinstance(divisor, int) else None


def _divided_by_dim(dividend: Size, divisor: Dim) -> Size:
    """Returns the quotient by long division, as long as a term is divisible by the leading one."""
    (leading, factor), whole, rest = divisor.terms[0], 0, dividend
    while True:
        for monomial, coefficient in terms_of(rest):
            quotient = _without(monomial, leading)
            if quotient is not None and coefficient % factor == 0:
                step = size_of({quotient: coefficient // factor})
                whole, rest = whole + step, rest - step * divisor
                break
        else:
            break
    if rest == 0:
        return whole
    common = math.gcd(common_factor([rest]), common_factor([divisor]))
    shared = _shared_atoms([*terms_of(rest), *divisor.terms])
    numerator, denominator = (_reduced(size, common, shared) for size in (rest, divisor))
    if isinstance(denominator, int):
        return whole + floordiv(numerator, denominator)
    return whole + atom(SizeFunction("floordiv", (numerator, denominator)))


def _reduced(size: Size, factor: int, atoms: Monomial) -> Size:
    terms = {
        (_without(monomial, atoms) or ()): count // factor for monomial, count in terms_of(size)
    }
    return size_of(terms)


def _shared_atoms(terms: Iterable[tuple[Monomial, int]]) -> Monomial:
    """Returns the atoms that all monomials have in common, with their powers."""
    first, *others = (monomial for monomial, _ in terms)
    shared: list[Atom] = []
    for item in first:
        wanted = shared.count(item) + 1
        if all(other.count(item) >= wanted for other in others):
            shared.append(item)
    return tuple(shared)


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """Returns the monomial divided by another one, `None` if that is not a divisor."""
    left = list(monomial)
    for item in divisor:
        if item not in left:
            return None
        left.remove(item)
    return tuple(left)


def _product(one: Monomial, two: Monomial) -> Monomial:
    if not one or not two:
        return one or two
    return tuple(sorted((*one, *two), key=lambda item: item.key))


def _sum(parts: Iterable[tuple[Size, int]]) -> Size:
    total: dict[Monomial, int] = {}
    for size, sign in parts:
        for monomial, factor in terms_of(size):
            total[monomial] = total.get(monomial, 0) + sign * factor
    return size_of(total)


def _order(term: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    return -len(term[0]), tuple(item.key for item in term[0])


def _term_text(monomial: Monomial, factor: int, *, first: bool) -> str:
    sign = ("-" if factor < 0 else "") if first else (" - " if factor < 0 else " + ")
    number = [] if monomial and abs(factor) == 1 else [str(abs(factor))]
    return sign + "*".join([*number, *(item.key for item in monomial)])
