"""Samples: small instances of Relay ops, on which a backend's rules are tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from byoc_mlir.dialects.relay.base import PyValue

Shape: TypeAlias = tuple[int, ...]
Rest: TypeAlias = Callable[[Shape], Sequence[Shape]]
Range: TypeAlias = tuple[float | Sequence[float], float | Sequence[float]]
"""Smallest and largest value; sequences give them for each index of the last axis."""


def alone(data: Shape) -> Sequence[Shape]:
    """Returns no further shapes: the op has one operand."""
    return ()


@dataclass(frozen=True)
class Sample:
    """Sample of one op: the shape of its first operand, from which the others' follow, and its
    properties.
    """

    data: Shape
    rest: Rest = alone
    attributes: Mapping[str, PyValue] = field(default_factory=dict[str, PyValue])
    dtype: str = "float32"
    constants: bool = False
    """True if the operands after the first are constants."""
    values: Range | None = None
    """Range of the values; by default floats are normally distributed, and integers small and of
    both signs.
    """
    dtypes: Mapping[int, str] = field(default_factory=dict[int, str])
    """Element types of operands that differ from the first operand's, by position."""
    ranges: Mapping[int, Range] = field(default_factory=dict[int, Range])
    """Ranges of operands that differ from `values`, by position."""
    first_constant: bool = False
    """True if the first operand is a constant."""
    special: bool = False
    """True if the inputs have NaN, infinities and zeros of both signs among their values."""
    note: str = ""
    """Purpose of the sample."""

    @property
    def label(self) -> str:
        """Returns a label that distinguishes the sample from other samples of the op."""
        shapes = ", ".join(str(list(shape)) for shape in (self.data, *self.rest(self.data)))
        attributes = "".join(f" {name}={value}" for name, value in self.attributes.items())
        constants = " constant" if self.constants else ""
        first = " first constant" if self.first_constant else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.dtype} {shapes}{first}{constants}{attributes}{note}"

    def dtype_of(self, index: int) -> str:
        """Returns the element type of an operand."""
        return self.dtypes.get(index, self.dtype)

    def range_of(self, index: int) -> Range | None:
        """Returns the range of the values of an operand."""
        return self.ranges.get(index, self.values)

    def is_constant(self, index: int) -> bool:
        """True if an operand is a constant."""
        return self.constants if index else self.first_constant
