"""Integer arithmetic in numpy, defined for every operand: `docs/semantics.md` has the rules.

Casts of floats out of range, negative powers and division by zero give the results of generated
code. In numpy they depend on the processor, fail, or warn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from byoc_mlir.tensors import Array


def divide(lhs: Array, rhs: Array) -> Array:
    """Returns the quotient rounded toward zero; x / 0 is 0, and the smallest integer / -1 wraps."""
    lhs, rhs = np.broadcast_arrays(lhs, rhs)
    quotient = np.floor_divide(lhs, rhs)
    inexact = quotient * rhs != lhs
    return quotient + (inexact & ((lhs < 0) != (rhs < 0)) & (rhs != 0))


def remainder(lhs: Array, rhs: Array) -> Array:
    """Returns the remainder of `divide`, with the sign of `lhs`; 0 for a divisor of 0."""
    return np.where(rhs == 0, lhs.dtype.type(0), lhs - divide(lhs, rhs) * rhs)


def floor_remainder(lhs: Array, rhs: Array) -> Array:
    """Returns the remainder with the sign of `rhs`; 0 for a divisor of 0."""
    rest = remainder(lhs, rhs)
    return np.where((rest != 0) & ((rest < 0) != (rhs < 0)), rest + rhs, rest)


def power(base: Array, exponent: Array) -> Array:
    """Returns `base` to the power of `exponent`, modulo the width.

    Results of negative exponents are truncated: 1 or -1 for a base of 1 or -1, otherwise 0.
    """
    is_below = exponent < 0
    result = np.power(base, np.where(is_below, exponent & 1, exponent))
    is_unit = (base == 1) | (-base == 1)
    return np.where(is_below & ~is_unit, base.dtype.type(0), result)


def convert(array: Array, dtype: np.dtype[Any]) -> Array:
    """Converts the elements to another type.

    Floats are truncated to a wide signed integer (32 bits for narrower types and `i32`, else 64),
    of which the result has the low bits. NaN and values out of range become the smallest wide
    integer. Only `ui64` holds values beyond that range, up to 2^64.
    """
    if not _is_integer(dtype) or array.dtype.kind in "biu" or _is_integer(array.dtype):
        with np.errstate(over="ignore"):  # too large values become infinite
            return array.astype(dtype)
    is_narrow = dtype.itemsize < 4 or dtype == np.int32
    wide = np.dtype(np.int32 if is_narrow else np.int64)
    low = _toward_zero(array, wide)
    if dtype != np.uint64:
        return low.astype(dtype)
    half = 2.0**63
    numbers = array.astype(np.float64)
    high = _toward_zero(numbers - half, wide) ^ np.iinfo(wide).min
    return np.where(numbers >= half, high, low).astype(dtype)


def _toward_zero(array: Array, dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    numbers = array.astype(np.float64)
    fits = (numbers >= info.min) & (numbers < -float(info.min))
    return np.where(fits, np.where(fits, numbers, 0).astype(dtype), info.min).astype(dtype)


def _is_integer(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" or dtype.name in ("int2", "int4", "uint2", "uint4")
