"""Primitives that differ in the number of rows or pixels alone: one measurement serves all."""

from __future__ import annotations

from collections.abc import Hashable

from byoc_mlir.backends.dnnl.library.calls import Attributes, Descriptors, MemoryDescriptor
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive, Operand
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.onednn.constants import Arg

_FACTOR = 2.0
"""How many times the work of what was measured an estimate may be for, or the other way round: with
more rows, libraries choose other blocks."""


class Alike:
    """What primitives were measured to take, for others that are like them."""

    def __init__(self) -> None:
        self._measured: dict[Hashable, dict[float, float]] = {}

    def add(self, likeness: Hashable | None, work: float, milliseconds: float) -> None:
        """Keeps a measurement, if it can serve others.

        Args:
            likeness: from `likeness_of`.
            work: in the unit of `estimate`.
        """
        if likeness is not None:
            self._measured.setdefault(likeness, {})[work] = milliseconds

    def estimate(self, likeness: Hashable | None, work: float) -> float | None:
        """The milliseconds of so much work by what was measured of nearly as much, if it was."""
        known = self._measured.get(likeness, {})
        nearest = min(known, key=lambda one: max(one / work, work / one), default=0.0)
        if not nearest / _FACTOR <= work <= nearest * _FACTOR:
            return None
        return known[nearest] * work / nearest


def likeness_of(
    described: DescribedPrimitive, implementation: str, threads: int
) -> Hashable | None:
    """A key that is equal for primitives with weights of one shape, in the same layouts, by the
    same implementation; `None` for primitives without constant weights.
    """
    if not any(_is_weight(operand) for operand in described.operands):
        return None
    others = tuple(
        len(argument.post_ops) if isinstance(argument, Attributes) else argument
        for argument in described.call.arguments
        if not isinstance(argument, MemoryDescriptor | Descriptors)
    )
    forms = tuple(map(_form, described.operands))
    return described.call.kind, implementation, threads, others, forms


def problem_of(described: DescribedPrimitive, threads: int) -> Hashable | None:
    """A key that is equal for primitives that compute the same, in whatever layouts and by whatever
    algorithm; `None` for those without weights.
    """
    if all(operand.argument != Arg.WEIGHTS for operand in described.operands):
        return None
    windows = tuple(one for one in described.call.arguments if isinstance(one, tuple))
    seen = ((one.argument, one.descriptor) for one in described.operands)
    types = tuple((argument, one.data_type, one.dims) for argument, one in seen)
    return described.call.kind, threads, windows, types


def _is_weight(operand: Operand) -> bool:
    return operand.argument == Arg.WEIGHTS and isinstance(operand.value.owner, ConstantOp)


def _form(operand: Operand) -> Hashable:
    """An operand without what may differ."""
    seen = operand.descriptor
    dims = seen.dims if _is_weight(operand) else len(seen.dims)
    return operand.argument, seen.data_type, seen.layout, dims
