"""`Shapes`: comparisons of sizes, by proof, or by hints and a recorded guard."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from byoc_mlir.dims.bounds import Range, Ranges, bounds
from byoc_mlir.dims.dim import Dim, Size, symbol_of
from byoc_mlir.dims.evaluate import evaluated, symbols_of
from byoc_mlir.dims.prove import proved_at_most, proved_same
from byoc_mlir.errors import UndecidedSizeError

Relation: TypeAlias = Literal["==", "!=", "<=", ">"]
_OPPOSITE: Mapping[Relation, Relation] = {"==": "!=", "!=": "==", "<=": ">", ">": "<="}

LEAST_HINT = 2
"""Smallest hint, as 0 and 1 have properties that other sizes do not have."""


@dataclass(frozen=True)
class SymbolInfo:
    """Known properties of a symbol.

    Decisions are made for the size `hint`, which is at least 2, if `max` allows that. Choices of
    speed are made for `expected`, which may be less, and is the hint by default. Comparisons of
    symbolic sizes use `expected`, too: for `past`, `seq` and `total` of 4, 1 and 5, `past + seq` is
    `total`; for 4, 2 and 5 it is not.
    """

    name: str
    min: int = 0
    max: int | None = None
    hint: int = LEAST_HINT
    expected: int | None = None

    @property
    def range(self) -> Range:
        """Returns the minimum and the maximum of the symbol."""
        return self.min, math.inf if self.max is None else self.max

    def contradiction(self) -> str | None:
        """Returns why the properties contradict each other; `None` if they do not."""
        greatest = self.range[1]
        if not 0 <= self.min <= greatest:
            return f"min is {self.min} and max {greatest}; accepted is 0 <= min <= max"
        if not max(self.min, min(LEAST_HINT, greatest)) <= self.hint <= greatest:
            return (
                f"the hint is {self.hint}; accepted is a size in [{self.min}, {greatest}], not less"
                f" than {LEAST_HINT} where there are such"
            )
        if self.expected is not None and not 0 <= self.expected <= self.hint:
            return f"{self.expected} is expected; accepted is a size in [0, {self.hint}], the hint"
        return None


@dataclass(frozen=True)
class Guard:
    """Relation of two sizes that a decision depends on."""

    one: Size
    relation: Relation
    two: Size
    reason: str = ""
    """Name of the ONNX node that required the decision."""

    def holds(self, values: Mapping[str, int]) -> bool:
        """True if the relation holds for these symbols."""
        one, two = evaluated(self.one, values), evaluated(self.two, values)
        if self.relation in ("==", "!="):
            return (one == two) == (self.relation == "==")
        return (one <= two) == (self.relation == "<=")

    @property
    def least(self) -> tuple[str, int] | None:
        """Returns a symbol and its lower bound if the relation states one; otherwise `None`."""
        match self.one, self.relation, self.two:
            case (int(least), "<=", Dim() as size) | (Dim() as size, ">", int(least)):
                name = symbol_of(size)
            case _:
                return None
        if name is None:
            return None
        return name, least + (self.relation == ">")

    def __str__(self) -> str:
        return f"{self.one} {self.relation} {self.two}"


class Facts:
    """Known facts of sizes; comparisons follow from proofs, or from earlier decisions."""

    def __init__(
        self,
        symbols: Iterable[SymbolInfo] = (),
        guards: Iterable[Guard] = (),
        bound: Iterable[SymbolInfo] = (),
    ):
        """Creates the facts; `bound` are symbols that functions bind to computed values.

        No decision is made by the expected size of such a symbol.
        """
        self.symbols = {info.name: info for info in symbols}
        self.bound = {info.name: info for info in bound}
        self.guards = list(guards)
        self.reason = ""
        """ONNX node whose sizes are being decided, which new guards record."""
        self.ranges: Ranges = {}
        """Range of each symbol, narrowed by the guards."""
        self._bounds: dict[Size, Range] = {}
        self._hints = {name: info.hint for name, info in self.symbols.items()}
        self._expected = {
            name: info.hint if info.expected is None else info.expected
            for name, info in self.symbols.items()
        }
        self._usual = {name: max(1, size) for name, size in self._expected.items()}
        self._usual |= {name: info.hint for name, info in self.bound.items()}
        self._find_ranges()

    def bind(self, info: SymbolInfo) -> None:
        """Adds a symbol that a function binds."""
        self.bound[info.name] = info
        self._usual[info.name] = info.hint
        self._find_ranges()

    def _find_ranges(self) -> None:
        """Updates the ranges of symbols from their properties and the guards."""
        ranges = {name: info.range for name, info in {**self.symbols, **self.bound}.items()}
        for name, least in filter(None, (guard.least for guard in self.guards)):
            if name in ranges:
                low, high = ranges[name]
                ranges[name] = max(low, least), high
        if ranges != self.ranges:
            self.ranges = ranges
            self._bounds.clear()

    def bounds(self, size: Size) -> Range:
        """Returns a lower and an upper bound of the size; cached until the ranges change."""
        if size not in self._bounds:
            self._bounds[size] = bounds(size, self.ranges)
        return self._bounds[size]

    def hint(self, size: Size) -> int:
        """Returns the expected value of the size, with symbols of at least 1.

        It is for choices of performance, which are correct for all sizes.

        Raises:
            UndecidedSizeError: a symbol has no hint.
        """
        return evaluated(size, self._usual)

    def same(self, one: Size, two: Size) -> bool:
        """True if two sizes are equal.

        Raises:
            UndecidedSizeError: neither a proof nor a guard decides it.
        """
        known = self._known_same(one, two)
        return self._decided(one, "==", two) if known is None else known

    def at_most(self, one: Size, two: Size) -> bool:
        """True if `one <= two`.

        Raises:
            UndecidedSizeError: neither a proof nor a guard decides it.
        """
        known = proved_at_most(one, two, self.bounds)
        if known is None:
            known = self._stated(one, "<=", two)
        return self._decided(one, "<=", two) if known is None else known

    def surely_same(self, one: Size, two: Size) -> bool:
        """True if two sizes are known to be equal; makes no decision."""
        return self._known_same(one, two) is True

    def _known_same(self, one: Size, two: Size) -> bool | None:
        if one == two:
            return True
        known = proved_same(one, two, self.bounds)
        if known is None:
            known = self._stated(one, "==", two)
        return self._stated(two, "==", one) if known is None else known

    def _stated(self, one: Size, relation: Relation, two: Size) -> bool | None:
        """Returns the truth value of a relation that a guard states; otherwise `None`."""
        for guard in self.guards:
            if (guard.one, guard.two) != (one, two):
                continue
            if guard.relation in (relation, _OPPOSITE[relation]):
                return guard.relation == relation
        return None

    def _decided(self, one: Size, relation: Relation, two: Size) -> bool:
        """Decides a relation that neither a proof nor a guard decides; here, it raises."""
        raise UndecidedSizeError(
            f"whether {one} {relation} {two} is not known; a relay.guard or bounds of a"
            " relay.symbol can tell"
        )


class Shapes(Facts):
    """Symbols of a model, and the decisions about them.

    A comparison without proof is decided by the hints, and a guard is recorded: the result is valid
    for sizes that fulfil it. Two symbolic sizes are compared by their expected values.
    """

    def _decided(self, one: Size, relation: Relation, two: Size) -> bool:
        names = {name for size in (one, two) if isinstance(size, Dim) for name in symbols_of(size)}
        if not names <= self._hints.keys():
            return super()._decided(one, relation, two)
        is_of_symbols = isinstance(one, Dim) and isinstance(two, Dim)
        sizes = self._expected if is_of_symbols else self._hints
        answer = Guard(one, relation, two).holds(sizes)
        chosen = relation if answer else _OPPOSITE[relation]
        self.guards.append(Guard(one, chosen, two, self.reason))
        self._find_ranges()
        return answer
