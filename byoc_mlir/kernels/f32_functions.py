"""Elementary functions of `f32` as straight-line arithmetic, for LLVM to vectorise.

Each function is accurate for every input, and treats NaN, infinities, signed zeros and denormals as
the C library does. The errors in ulp are the largest found against `f64` over a dense sweep (with
FMA; tests check them). Coefficients are minimax fits, weighted by the relative error of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from byoc_mlir.kernels.f32_code import (
    INFINITY,
    LOG2_E,
    MANTISSA_BITS,
    NAN,
    F32Code,
    FloatCode,
)
from byoc_mlir.kernels.f32_trigonometry import cos, sin, tan

_LN2_HIGH = 0.693359375
"""ln 2 to 10 bits, so that its product with a small integer is exact."""
_LN2_LOW = -2.12194440e-4

_EXPM1_TAIL = (0.5, 0.16666512, 0.041666187, 0.0083695985, 0.001395172)
"""`(e^r - 1 - r) / r^2` for |r| <= ln 2 / 2."""
_LOG1P_TAIL = (
    0.33333337307,
    -0.24999806285,
    0.19999565184,
    -0.16680356860,
    0.14305596054,
    -0.12183310837,
    0.10739468038,
    -0.12906086445,
    0.12070582062,
)
"""`(log(1 + f) - f + f^2 / 2) / f^3` for |f| <= 1/3."""
_TANH_NUMERATOR = (
    0.99999994040,
    0.13379716873,
    0.0034940333571,
    0.000020583465418,
    0.000000013319053416,
)
_TANH_DENOMINATOR = (
    1.0,
    0.46713033319,
    0.025871066377,
    0.00032830913552,
    0.00000077620109736,
)
"""`tanh(x) / x` as a quotient of polynomials of x^2, for |x| <= 9.02."""
_ERF_NUMERATOR = (
    1.1283788681,
    0.18730926514,
    0.052418649197,
    0.0036527924240,
    0.00028594405740,
    0.0000021231251139,
)
_ERF_DENOMINATOR = (
    0.99999982119,
    0.49933138490,
    0.11290087551,
    0.014742574655,
    0.0011417164933,
    0.000038898249822,
)
"""`erf(x) / x` as a quotient of polynomials of x^2, for |x| <= 3.83."""
_ERF_IS_ONE = 3.925
"""Value of x at which the quotient is at least 1 under any rounding; `erf` rounds to 1 from 3.8325
on."""

_LN2 = 0.69314718
_LARGE = 2.0**40
"""Magnitude from which `1 + x` rounds to x, and `1 + x^2` to `x^2`, which is finite."""

_EXP_UNDERFLOW, _EXP_OVERFLOW = -104.0, 89.0
_EXP_IS_ZERO, _EXP_SHIFT = -104.6, 24
_EXPM1_IS_MINUS_ONE = -20.0
_TANH_IS_ONE = 9.09
"""Value of x at which the quotient is at least 1 under any rounding; `tanh` rounds to 1 from 9.01
on."""

_SMALLEST_NORMAL = 2.0**-126
_DENORMAL_SHIFT = 23
_TWO_THIRDS_BITS = 0x3F2AAAAB
_EXPONENT_BIAS = 127

AT_MOST_ZERO = "at_most_zero"
"""Attribute of `math.exp` for an operand that is at most zero, or NaN."""


def exp(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `e^x` to 1.1 ulp, as `2^n e^r` with `x = n ln 2 + r`."""
    clamped = code.at_least(code.at_most(x, _EXP_OVERFLOW), _EXP_UNDERFLOW)
    tail, exponent = _expm1_of_remainder(code, clamped)
    mantissa = code.add(tail, 1.0)
    return _scaled(code, mantissa, exponent)


def exp_at_most_one(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `e^x` for x <= 0 to 1.1 ulp, as `2^n e^r` like `exp`, in fewer steps.

    `2^(n + 24)` is zero for the smallest n and a normal number otherwise. So masked elements cause
    no slow denormals.
    """
    clamped = code.at_least(x, _EXP_IS_ZERO)
    tail, exponent = _expm1_of_remainder(code, clamped)
    biased = code.emit(arith.AddiOp(exponent, code.integer(_EXPONENT_BIAS + _EXP_SHIFT)))
    power = code.from_bits(code.emit(arith.ShLIOp(biased, code.integer(MANTISSA_BITS))))
    return code.multiply(code.multiply(code.add(tail, 1.0), power), 2.0**-_EXP_SHIFT)


def expm1(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `e^x - 1` to 1.6 ulp, as `2^n (e^r - 1) + (2^n - 1)`.

    The terms are halved so that `2^n` does not overflow too early.
    """
    clamped = code.at_least(code.at_most(x, _EXP_OVERFLOW), _EXPM1_IS_MINUS_ONE)
    tail, exponent = _expm1_of_remainder(code, clamped)
    halved = code.emit(arith.SubiOp(exponent, code.integer(1)))
    half = code.power_of_two(halved)
    value = code.add(code.multiply(half, tail), code.add(half, -0.5))
    return _keep_zero(code, x, code.multiply(value, 2.0))


def log(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `log x` to 0.9 ulp."""
    exponent, tail, fraction = _log_parts(code, x)
    low = code.add(code.multiply(exponent, _LN2_LOW), tail)
    value = code.add(code.multiply(exponent, _LN2_HIGH), code.add(low, fraction))
    value = code.select(code.compare("olt", x, INFINITY), value, x)
    value = code.select(code.compare("olt", x, 0.0), NAN, value)
    return code.select(code.compare("oeq", x, 0.0), -INFINITY, value)


def log1p(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `log(1 + x)` to 1.6 ulp; corrects the rounding error of `1 + x` to first order."""
    shifted = code.emit(arith.AddfOp(x, code.number(1.0)))
    lost = code.emit(arith.SubfOp(x, code.emit(arith.SubfOp(shifted, code.number(1.0)))))
    logarithm = log(code, shifted)
    corrected = code.add(logarithm, code.divide(lost, shifted))
    is_infinite = code.compare("oeq", code.absolute(logarithm), INFINITY)
    return _keep_zero(code, x, code.select(is_infinite, logarithm, corrected))


def tanh(code: FloatCode, x: SSAValue) -> SSAValue:
    """Computes `tanh x` to 5.3 ulp, as a quotient of polynomials."""
    return _odd_quotient(code, x, _TANH_NUMERATOR, _TANH_DENOMINATOR, _TANH_IS_ONE)


def erf(code: FloatCode, x: SSAValue) -> SSAValue:
    """Computes `erf x` to 6.0 ulp, as a quotient of polynomials."""
    return _odd_quotient(code, x, _ERF_NUMERATOR, _ERF_DENOMINATOR, _ERF_IS_ONE)


def _odd_quotient(
    code: FloatCode,
    x: SSAValue,
    numerator: Sequence[float],
    denominator: Sequence[float],
    one_from: float,
) -> SSAValue:
    """Computes `x p(x^2) / q(x^2)`, clamped to [-1, 1], for x clamped to `one_from` in magnitude.

    The quotient is at least 1 at `one_from`.
    """
    held = _between(code, x, one_from)
    square = code.multiply(held, held)
    dividend = code.multiply(code.polynomial(square, numerator), held)
    quotient = code.divide(dividend, code.polynomial(square, denominator))
    return _between(code, quotient, 1.0)


def _between(code: FloatCode, x: SSAValue, bound: float) -> SSAValue:
    """Clamps x to [-bound, bound], and keeps NaN."""
    return code.at_least(code.at_most(x, bound), -bound)


def sinh(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `sinh x` to 2.2 ulp, as `(t + t / (t + 1)) / 2` with `t = e^|x| - 1`.

    Above 20 the result is `e^|x| / 2`.
    """
    magnitude = code.absolute(x)
    tail = expm1(code, magnitude)
    ratio = code.divide(tail, code.add(tail, 1.0))
    small = code.multiply(code.add(tail, ratio), 0.5)
    value = code.select(code.compare("ogt", magnitude, 20.0), _half_exp(code, magnitude), small)
    return code.with_sign_of(value, x)


def cosh(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `cosh x` to 1.6 ulp, as `e^|x| / 2 + e^-|x| / 2` without early overflow."""
    half = _half_exp(code, code.absolute(x))
    return code.add(half, code.divide(0.25, half))


def asinh(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `asinh x` to 3.5 ulp, as `log1p(a + a^2 / (1 + sqrt(1 + a^2)))` with `a = |x|`."""
    magnitude = code.absolute(x)
    square = code.multiply(magnitude, magnitude)
    root = code.square_root(code.add(square, 1.0))
    more = code.divide(square, code.add(root, 1.0))
    value = _log1p_or_log_twice(code, magnitude, code.add(magnitude, more))
    return code.with_sign_of(value, x)


def acosh(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `acosh x` to 3.5 ulp, as `log1p(t + sqrt(2 t + t^2))` with `t = x - 1`."""
    above = code.emit(arith.SubfOp(x, code.number(1.0)))
    root = code.square_root(code.multiply(above, code.add(above, 2.0)))
    value = _log1p_or_log_twice(code, x, code.add(above, root))
    return code.select(code.compare("olt", x, 1.0), NAN, value)


def atanh(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `atanh x` to 3.5 ulp, as `log1p(2 a / (1 - a)) / 2` with `a = |x|`."""
    magnitude = code.absolute(x)
    ratio = code.divide(code.add(magnitude, magnitude), code.subtract(1.0, magnitude))
    return code.with_sign_of(code.multiply(log1p(code, ratio), 0.5), x)


def _log1p_or_log_twice(code: F32Code, x: SSAValue, shifted: SSAValue) -> SSAValue:
    """Computes `log(1 + shifted)`, but `log(2 x)` for an x whose square could overflow."""
    is_large = code.compare("ogt", x, _LARGE)
    logarithm = log1p(code, code.select(is_large, x, shifted))
    return code.add(logarithm, code.select(is_large, _LN2, 0.0))


def _half_exp(code: F32Code, x: SSAValue) -> SSAValue:
    """Computes `e^x / 2` for x >= 0; finite if the result is, even if `e^x` overflows."""
    clamped = code.at_most(x, 90.0)
    tail, exponent = _expm1_of_remainder(code, clamped)
    halved = code.emit(arith.SubiOp(exponent, code.integer(1)))
    return _scaled(code, code.add(tail, 1.0), halved)


def _expm1_of_remainder(code: F32Code, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Returns `e^r - 1` and n, with `x = n ln 2 + r`."""
    rounded, exponent = code.nearest_integer(code.multiply(x, LOG2_E))
    high = code.subtract(x, code.multiply(rounded, _LN2_HIGH))
    remainder = code.subtract(high, code.multiply(rounded, _LN2_LOW))
    tail = code.polynomial(remainder, _EXPM1_TAIL)
    square = code.multiply(remainder, remainder)
    return code.add(code.multiply(tail, square), remainder), exponent


def _scaled(code: F32Code, mantissa: SSAValue, exponent: SSAValue) -> SSAValue:
    """Computes `mantissa * 2^exponent` in two steps; the result may be denormal or infinite."""
    half = code.emit(arith.ShRSIOp(exponent, code.integer(1)))
    other = code.emit(arith.SubiOp(exponent, half))
    scaled = code.multiply(mantissa, code.power_of_two(half))
    return code.multiply(scaled, code.power_of_two(other))


def _keep_zero(code: F32Code, x: SSAValue, value: SSAValue) -> SSAValue:
    """Returns `value`, but `x` if x is zero, to keep the sign of a zero."""
    return code.select(code.compare("oeq", x, 0.0), x, value)


def _log_parts(code: F32Code, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Returns e, t and f with `log x = e ln 2 + (t + f)`, `1 + f` in [2/3, 4/3) and a small t."""
    is_small = code.compare("olt", x, _SMALLEST_NORMAL)
    normal = code.select(is_small, code.multiply(x, 2.0**_DENORMAL_SHIFT), x)
    bits = code.bits(normal)
    offset = code.emit(arith.SubiOp(bits, code.integer(_TWO_THIRDS_BITS)))
    exponent = code.emit(arith.ShRSIOp(offset, code.integer(MANTISSA_BITS)))
    shift = code.emit(arith.ShLIOp(exponent, code.integer(MANTISSA_BITS)))
    mantissa = code.from_bits(code.emit(arith.SubiOp(bits, shift)))
    fraction = code.emit(arith.SubfOp(mantissa, code.number(1.0)))
    square = code.multiply(fraction, fraction)
    cubic = code.multiply(code.polynomial(fraction, _LOG1P_TAIL), fraction)
    tail = code.multiply(code.add(cubic, -0.5), square)
    power = code.emit(arith.SIToFPOp(exponent, f32))
    correction = code.select(is_small, float(-_DENORMAL_SHIFT), 0.0)
    return code.add(power, correction), tail, fraction


FUNCTIONS: Mapping[type[Operation], Callable[[F32Code, SSAValue], SSAValue]] = {
    math.ExpOp: exp,
    math.LogOp: log,
    math.Log1pOp: log1p,
    math.TanhOp: tanh,
    math.ErfOp: erf,
    math.SinhOp: sinh,
    math.CoshOp: cosh,
    math.AsinhOp: asinh,
    math.AcoshOp: acosh,
    math.AtanhOp: atanh,
    math.SinOp: sin,
    math.CosOp: cos,
    math.TanOp: tan,
}
"""Expansion of each math op with one operand."""
