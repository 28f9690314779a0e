"""Element types in the bodies of `linalg.generic`, and their kinds of arithmetic."""

from __future__ import annotations

import math
from enum import Enum, auto

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IndexType,
    IntegerType,
    Signedness,
    f32,
)
from xdsl.ir import Attribute

from byoc_mlir.dialects.relay.element_types import is_unsigned


class Kind(Enum):
    """Kind of arithmetic of an element type."""

    FLOAT = auto()
    SIGNED = auto()
    UNSIGNED = auto()

    @staticmethod
    def of(element_type: Attribute) -> Kind:
        """Returns the kind of arithmetic of a `relay` element type."""
        if not isinstance(element_type, IntegerType | IndexType):
            return Kind.FLOAT
        return Kind.UNSIGNED if is_unsigned(element_type) else Kind.SIGNED


def signless(element_type: Attribute) -> Attribute:
    """Returns the type that bodies compute with: `i8` for `ui8`."""
    if isinstance(element_type, IntegerType) and element_type.signedness.data != (
        Signedness.SIGNLESS
    ):
        return IntegerType(element_type.width.data)
    return element_type


def accumulator_type(element_type: Attribute) -> Attribute:
    """Returns the type of accumulators: f32 for f16 and bf16."""
    return f32 if isinstance(element_type, Float16Type | BFloat16Type) else element_type


def bounds(element_type: Attribute) -> tuple[float, float]:
    """Returns the minimum and maximum of a type (infinities for floats)."""
    if not isinstance(element_type, IntegerType):
        return -math.inf, math.inf
    width = element_type.width.data
    if is_unsigned(element_type):
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1
