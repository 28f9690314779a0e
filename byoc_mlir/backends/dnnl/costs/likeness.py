"""Keys of primitives that share a measurement, since they differ only in the number of rows or
pixels.
"""

from __future__ import annotations

from collections.abc import Hashable

from byoc_mlir.backends.dnnl.library.calls import Attributes, Descriptors, MemoryDescriptor
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive, Operand
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.onednn.constants import Arg

_FACTOR = 2.0
"""Maximum ratio between the estimated and the measured amount of work; with many more rows,
libraries choose other blocks."""


class Alike:
    """Measurements of primitives, from which similar primitives are estimated."""

    def __init__(self) -> None:
        self._measured: dict[Hashable, dict[float, float]] = {}

    def add(self, likeness: Hashable | None, work: float, milliseconds: float) -> None:
        """Keeps a measurement, unless its likeness is `None`.

        Args:
            likeness: result of `likeness_of`.
            work: MACs or bytes, as in `estimate`.
        """
        if likeness is not None:
            self._measured.setdefault(likeness, {})[work] = milliseconds

    def estimate(self, likeness: Hashable | None, work: float) -> float | None:
        """Estimates the milliseconds of `work` from a measurement of equal likeness.

        The measurement with the most similar amount of work is used. Returns `None` if none is
        similar enough.
        """
        known = self._measured.get(likeness, {})
        nearest = min(known, key=lambda one: max(one / work, work / one), default=0.0)
        if not nearest / _FACTOR <= work <= nearest * _FACTOR:
            return None
        return known[nearest] * work / nearest


def likeness_of(
    described: DescribedPrimitive, implementation: str, threads: int
) -> Hashable | None:
    """Returns a key that is equal for primitives with the same implementation, layouts and weight
    shape.

    Returns `None` for primitives without constant weights.
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
    """Returns a key that is equal for primitives that compute the same results, in any layout and
    by any algorithm.

    Returns `None` for primitives without weights.
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
    """Returns a key of an operand, without the dimensions in which similar primitives differ."""
    seen = operand.descriptor
    dims = seen.dims if _is_weight(operand) else len(seen.dims)
    return operand.argument, seen.data_type, seen.layout, dims
