"""Element types of `relay` tensors, and the numpy dtypes that hold them.

Signed integers are signless in the IR, as everywhere in MLIR; unsigned ones are explicit (`ui8`).
Types of less than eight bits take a byte for each element, in numpy as in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float4E2M1FNType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute, TypeAttribute

from byoc_mlir.errors import UnsupportedTypeError


def _unsigned(width: int) -> IntegerType:
    return IntegerType(width, Signedness.UNSIGNED)


_DTYPES: dict[Attribute, np.dtype[Any]] = {
    Float32Type(): np.dtype(np.float32),
    Float64Type(): np.dtype(np.float64),
    Float16Type(): np.dtype(np.float16),
    BFloat16Type(): np.dtype(ml_dtypes.bfloat16),
    Float8E4M3FNType(): np.dtype(ml_dtypes.float8_e4m3fn),
    Float8E4M3FNUZType(): np.dtype(ml_dtypes.float8_e4m3fnuz),
    Float8E5M2Type(): np.dtype(ml_dtypes.float8_e5m2),
    Float8E5M2FNUZType(): np.dtype(ml_dtypes.float8_e5m2fnuz),
    Float8E8M0FNUType(): np.dtype(ml_dtypes.float8_e8m0fnu),
    Float4E2M1FNType(): np.dtype(ml_dtypes.float4_e2m1fn),
    IntegerType(1): np.dtype(np.bool_),
    IntegerType(2): np.dtype(ml_dtypes.int2),
    IntegerType(4): np.dtype(ml_dtypes.int4),
    IntegerType(8): np.dtype(np.int8),
    IntegerType(16): np.dtype(np.int16),
    IntegerType(32): np.dtype(np.int32),
    IntegerType(64): np.dtype(np.int64),
    _unsigned(2): np.dtype(ml_dtypes.uint2),
    _unsigned(4): np.dtype(ml_dtypes.uint4),
    _unsigned(8): np.dtype(np.uint8),
    _unsigned(16): np.dtype(np.uint16),
    _unsigned(32): np.dtype(np.uint32),
    _unsigned(64): np.dtype(np.uint64),
}
ui8 = _unsigned(8)

HALVES: tuple[Attribute, ...] = (Float16Type(), BFloat16Type())
"""Floats of 16 bits, which are computed in `f32`."""

NARROW_INTEGERS: tuple[IntegerType, ...] = (
    *(IntegerType(width) for width in (2, 4, 8, 16)),
    *(_unsigned(width) for width in (2, 4, 8, 16)),
)
"""Integers of at most 16 bits, whose values `f32` represents exactly."""

_TYPES = {dtype: type_ for type_, dtype in _DTYPES.items()}


def numpy_dtype(element_type: Attribute) -> np.dtype[Any]:
    """Returns the dtype of numpy arrays that hold `element_type`.

    Raises:
        UnsupportedTypeError: no numpy dtype holds it.
    """
    if element_type not in _DTYPES:
        raise _unsupported(element_type, _DTYPES)
    return _DTYPES[element_type]


def relay_type(dtype: np.dtype[Any]) -> TypeAttribute:
    """Returns the element type for values of a numpy dtype.

    Raises:
        UnsupportedTypeError: the dtype has no counterpart.
    """
    if dtype not in _TYPES:
        raise _unsupported(dtype, _TYPES)
    found = _TYPES[dtype]
    assert isinstance(found, TypeAttribute)
    return found


def _unsupported(found: object, accepted: Iterable[object]) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"elements of {found} are not supported, accepted are {', '.join(map(str, accepted))}"
    )


def integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Returns the smallest and the largest value of an integer type."""
    info: Any = ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def is_unsigned(element_type: Attribute) -> bool:
    """True if it is an unsigned integer; `i1` counts as unsigned."""
    return isinstance(element_type, IntegerType) and (
        element_type.signedness.data == Signedness.UNSIGNED or element_type.width.data == 1
    )
