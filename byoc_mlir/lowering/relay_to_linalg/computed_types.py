"""Types that the bodies of `linalg.generic` compute with, and their sort of arithmetic."""

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
    """The three sorts of arithmetic."""

    FLOAT = auto()
    SIGNED = auto()
    UNSIGNED = auto()

    @staticmethod
    def of(element_type: Attribute) -> Kind:
        """Returns the sort of arithmetic of a `relay` element type."""
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
    """Returns the type to sum in: half precision is summed in f32."""
    return f32 if isinstance(element_type, Float16Type | BFloat16Type) else element_type


def bounds(element_type: Attribute) -> tuple[float, float]:
    """Returns the least and the greatest value of a type (infinities for floats)."""
    if not isinstance(element_type, IntegerType):
        return -math.inf, math.inf
    width = element_type.width.data
    if is_unsigned(element_type):
        return 0, 2**width - 1
    return -(2 ** (width - 1)), 2 ** (width - 1) - 1
