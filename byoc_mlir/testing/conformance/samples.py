"""Small instances of Relay ops: what a backend's rules are tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from byoc_mlir.dialects.relay.base import PyValue

Shape: TypeAlias = tuple[int, ...]
Rest: TypeAlias = Callable[[Shape], Sequence[Shape]]
Range: TypeAlias = tuple[float | Sequence[float], float | Sequence[float]]
"""The least and the largest value; sequences say it for each place along the last axis."""


def alone(data: Shape) -> Sequence[Shape]:
    """No operands behind the first."""
    return ()


@dataclass(frozen=True)
class Sample:
    """One op: the shape of its first operand, from which the others' follow, and its properties."""

    data: Shape
    rest: Rest = alone
    attributes: Mapping[str, PyValue] = field(default_factory=dict[str, PyValue])
    dtype: str = "float32"
    constants: bool = False
    """Whether the operands behind the first are constants."""
    values: Range | None = None
    """The range of the values; without one floats are of a normal distribution, and integers
    small ones of both signs."""
    dtypes: Mapping[int, str] = field(default_factory=dict[int, str])
    """The element types of the operands that have one of their own, by position."""
    ranges: Mapping[int, Range] = field(default_factory=dict[int, Range])
    """The ranges of the values of the operands that have one of their own, by position."""
    first_constant: bool = False
    """Whether the first operand is a constant."""
    special: bool = False
    """Whether NaN, infinities and zeros of both signs are among the values of the inputs."""
    note: str = ""
    """What the sample is for."""

    @property
    def label(self) -> str:
        """What tells it from other samples of the op."""
        shapes = ", ".join(str(list(shape)) for shape in (self.data, *self.rest(self.data)))
        attributes = "".join(f" {name}={value}" for name, value in self.attributes.items())
        constants = " constant" if self.constants else ""
        first = " first constant" if self.first_constant else ""
        note = f" ({self.note})" if self.note else ""
        return f"{self.dtype} {shapes}{first}{constants}{attributes}{note}"

    def dtype_of(self, index: int) -> str:
        """The element type of an operand."""
        return self.dtypes.get(index, self.dtype)

    def range_of(self, index: int) -> Range | None:
        """The range of the values of an operand."""
        return self.ranges.get(index, self.values)

    def is_constant(self, index: int) -> bool:
        """Whether an operand is a constant."""
        return self.constants if index else self.first_constant
