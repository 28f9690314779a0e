"""Formulas of values in a loop's body: integer expressions in the iteration number.

The importer must know that a slice `x[i:i + 1]` has size 1, although `i` is computed at run time.
So integers that follow from the iteration number have a *formula*, in addition to the ops that
compute them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from byoc_mlir.dialects.relay import RelayOp, elementwise, index
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.shape import (
    asked,
    asking,
    at_most,
    is_symbolic,
    names_in,
    sizes_of,
    tensor_type,
)
from byoc_mlir.dims import Dim, Facts, Guard, Size, SymbolInfo, symbol
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.frontend.sizes import (
    Content,
    SizeTensor,
    computed_sizes,
    size_array,
    size_content,
)
from byoc_mlir.tensors import MOST_SIZES, Array

_FAR = 1 << 31
"""Trip count from which a loop's end counts as unknown."""


class Iterations:
    """Loops of an import, each with a symbol for its iteration number."""

    def __init__(self) -> None:
        self._symbols: list[SymbolInfo] = []
        self._ends: list[Guard] = []

    def number(self, count: Size | None) -> SizeTensor:
        """Adds a loop, and returns the formula of its iteration number, from 0 to `count - 1`."""
        most = max(count - 1, 0) if isinstance(count, int) and count < _FAR else None
        name = f"iteration {len(self._symbols)}"
        number = symbol(name)
        self._symbols.append(SymbolInfo(name, max=most))
        if isinstance(count, Dim):
            self._ends += [Guard(number, "<=", count), Guard(number + 1, "<=", count)]
        return SizeTensor(size_array(number), np.dtype(np.int64))

    def facts(self) -> Facts:
        """Returns the known facts about sizes and iteration numbers."""
        known = asked()
        symbols = [*known.symbols.values(), *self._symbols]
        return Facts(symbols, [*known.guards, *self._ends], known.bound.values())

    def is_fixed(self, size: Size) -> bool:
        """True if a size is the same in all iterations."""
        return names_in([size]).isdisjoint(info.name for info in self._symbols)

    def formulas(self, op: RelayOp, operands: Sequence[Content]) -> Sequence[Content] | None:
        """Returns the formulas of an op's results, or `None` if they have none."""
        results = [sizes_of(result) for result in op.results]
        if any(is_symbolic(sizes) or math.prod(sizes) > MOST_SIZES for sizes in results):
            return None
        whole = [given for given in map(_whole, operands) if given is not None]
        if len(whole) < len(operands):
            return None
        facts = self.facts()
        try:
            with asking(facts):
                found = _computed(op, whole)
        except UndecidedSizeError:
            return None
        return found if found and all(_fits(content, facts) for content in found) else None


def _whole(content: Content) -> Content | None:
    """Returns the content as integers if all its floats are integers, or `None`."""
    if isinstance(content, SizeTensor) or content.dtype.kind in "iub":
        return content
    if content.dtype.kind != "f" or not np.isfinite(content).all():
        return None
    integers = content.astype(np.int64)
    return integers if np.array_equal(integers, content) else None


def _computed(op: RelayOp, operands: Sequence[Content]) -> Sequence[Content] | None:
    dtype = numpy_dtype(tensor_type(op.results[0]).element_type)
    items = [_items(content) for content in operands]
    if isinstance(op, elementwise.CastOp):
        return [size_content(items[0], dtype)] if dtype.kind in "if" else None
    if isinstance(op, elementwise.MinimumOp | elementwise.MaximumOp):
        choose = _lesser if isinstance(op, elementwise.MinimumOp) else _greater
        chosen: Any = np.frompyfunc(choose, 2, 1)(*items)
        return [size_content(np.asarray(chosen, object), dtype)]
    if isinstance(op, elementwise.DivideOp) and dtype.kind == "f":
        return None
    if isinstance(op, index.TakeOp) and isinstance(operands[1], SizeTensor):
        return None
    return computed_sizes(op, operands)


def _items(content: Content) -> Array:
    return content.items if isinstance(content, SizeTensor) else content.astype(object)


def _lesser(one: Size, two: Size) -> Size:
    return one if _is_lesser(one, two) else two


def _greater(one: Size, two: Size) -> Size:
    return two if _is_lesser(one, two) else one


def _is_lesser(one: Size, two: Size) -> bool:
    """True if `one <= two` in all iterations, False if `one >= two` in all iterations.

    If both relations hold, the result may be True or False.

    Raises:
        UndecidedSizeError: neither relation is provable.
    """
    try:
        return at_most(one, two)
    except UndecidedSizeError:
        return not at_most(two, one)


def _fits(content: Content, facts: Facts) -> bool:
    """True if the type can hold the values of all iterations; loop counters always fit in `i64`."""
    if not isinstance(content, SizeTensor) or content.dtype == np.int64:
        return True
    floats = content.dtype.kind == "f"
    most = 1 << (np.finfo(content.dtype).nmant + 1) if floats else np.iinfo(content.dtype).max
    found = [facts.bounds(size) for size in content.flat]
    return all(-most <= low and high <= most for low, high in found)
