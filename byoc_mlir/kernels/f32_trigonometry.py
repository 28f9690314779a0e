"""Sine, cosine and tangent of f32 as straight-line arithmetic, accurate for every argument."""

from __future__ import annotations

from math import pi

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64, i32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.f32_code import F32Code

_CHUNK_BITS = 24
_TWO_OVER_PI = (
    0xA2F983,
    0x6E4E44,
    0x1529FC,
    0x2757D1,
    0xF534DD,
    0xC0DB62,
    0x95993C,
    0x439041,
)
"""First 192 bits of 2 / pi after the point; enough for arguments up to 2^128."""

_SIN_TAIL = (-0.16666655242, 0.00833215564, -0.00019514632)
"""`(sin r - r) / r^3` in powers of r^2, for |r| <= pi / 4."""
_COS_TAIL = (0.041666645557, -0.0013887309469, 0.000024432412829)
"""`(cos r - 1 + r^2 / 2) / r^4` in powers of r^2, for |r| <= pi / 4."""


def sin(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `sin x` to 1.6 ulp."""
    quadrant, sine, cosine = _quadrant_sin_cos(code, x)
    value = code.select(_bit(code, quadrant, 1), cosine, sine)
    value = _negated_if(code, _bit(code, quadrant, 2), value)
    return code.select(code.compare("oeq", x, 0.0), x, value)


def cos(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `cos x` to 1.5 ulp."""
    quadrant, sine, cosine = _quadrant_sin_cos(code, x)
    value = code.select(_bit(code, quadrant, 1), sine, cosine)
    following = code.emit(arith.AddiOp(quadrant, code.integer(1)))
    return _negated_if(code, _bit(code, following, 2), value)


def tan(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `tan x` to 3.2 ulp."""
    quadrant, sine, cosine = _quadrant_sin_cos(code, x)
    is_odd = _bit(code, quadrant, 1)
    numerator = code.select(is_odd, cosine, sine)
    denominator = code.select(is_odd, sine, cosine)
    value = _negated_if(code, is_odd, code.divide(numerator, denominator))
    return code.select(code.compare("oeq", x, 0.0), x, value)


def _quadrant_sin_cos(code: F32Code, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Returns n as an `i32`, sin r and cos r, with `x = n pi / 2 + r` up to multiples of 2 pi."""
    quadrant, r = _reduced(code, x)
    square = code.multiply(r, r)
    sine = code.multiply(code.polynomial(square, _SIN_TAIL), square)
    sine = code.add(code.multiply(sine, r), r)
    cosine = code.multiply(code.polynomial(square, _COS_TAIL), square)
    cosine = code.add(code.multiply(code.add(cosine, -0.5), square), 1.0)
    return quadrant, sine, cosine


def _reduced(code: F32Code, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns n and r with `x = n pi / 2 + r`, n up to multiples of 4.

    In `f64` the product of x with a 24-bit chunk of 2 / pi is exact, and so is its remainder modulo
    4. n is the integer nearest to the sum of the remainders, and r is computed from the difference.
    The sum begins with the largest term; so it keeps all bits that an `f32` needs, even if x is
    close to a multiple of pi / 2.
    """
    wide = code.emit(arith.ExtFOp(x, f64))
    terms = [
        _modulo_four(code, code.multiply(wide, chunk * 2.0 ** (-_CHUNK_BITS * (index + 1))))
        for index, chunk in enumerate(_TWO_OVER_PI)
    ]
    total = terms[0]
    for term in terms[1:]:
        total = code.add(total, term)
    quadrant = code.emit(math.RoundEvenOp(total))
    rest = code.subtract(terms[0], quadrant)
    for term in terms[1:]:
        rest = code.add(rest, term)
    r = code.emit(arith.TruncFOp(code.multiply(rest, pi / 2), f32))
    return _small_integer(code, quadrant), r


def _modulo_four(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `x - 4 n` in [-2, 2], exactly."""
    multiple = code.emit(math.RoundEvenOp(code.multiply(x, 0.25)))
    return code.subtract(x, code.multiply(multiple, 4.0))


def _small_integer(code: F32Code, x: SSAValue) -> SSAValue:
    """Converts a small integral `f64` to an `i32`; a NaN gives any integer."""
    narrow = code.emit(arith.TruncFOp(x, f32))
    _, integer = code.nearest_integer(narrow)
    assert integer.type == i32
    return integer


def _bit(code: F32Code, integer: SSAValue, mask: int) -> SSAValue:
    masked = code.emit(arith.AndIOp(integer, code.integer(mask)))
    return code.emit(arith.CmpiOp(masked, code.integer(0), "ne"))


def _negated_if(code: F32Code, condition: SSAValue, value: SSAValue) -> SSAValue:
    return code.select(condition, code.emit(arith.NegfOp(value)), value)
