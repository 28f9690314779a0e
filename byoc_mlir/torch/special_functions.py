"""Decompositions of special functions, computed in double precision.

Formulas are those of the Digital Library of Mathematical Functions (https://dlmf.nist.gov).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import factorial, inf, log, nan, pi, sqrt
from typing import Any

from byoc_mlir.torch.tensors import pytorch


def _in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of tensors and numbers that computes in double precision."""

    def computed(*operands: Any) -> Any:
        torch = pytorch()
        first, *others = operands
        kind = torch.result_type(first, *others) if others else first.dtype
        if kind in (torch.float64, torch.complex64, torch.complex128):
            return NotImplemented
        kind = kind if kind.is_floating_point else torch.get_default_dtype()
        wide = [torch.as_tensor(one).to(torch.float64) for one in operands]
        return function(*wide).to(kind)

    return computed


_LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
"""Coefficients of Lanczos's approximation of the gamma function for g = 7 and 9 terms."""


def lgamma(x: Any) -> Any:
    """Returns the logarithm of the gamma function's absolute value."""
    torch = pytorch()
    y = torch.where(x < 0.5, 1 - x, x) - 1
    series: Any = _LANCZOS[0] + sum(one / (y + k) for k, one in enumerate(_LANCZOS[1:], 1))
    t = y + 7.5
    log_gamma = log(2 * pi) / 2 + (y + 0.5) * t.log() - t + series.log()
    log_gamma = torch.where(y.isinf(), inf, log_gamma)
    reflected = log(pi) - _sin_pi(x).abs().log() - log_gamma
    found = torch.where(x < 0.5, reflected, log_gamma)
    is_pole = (x <= 0) & (x == x.floor())
    return torch.where(is_pole, inf, found)


def mvlgamma(x: Any, p: int) -> Any:
    """Returns the logarithm of the gamma function of `p` dimensions."""
    return _in_double(partial(_mvlgamma, p))(x)


def _mvlgamma(p: int, x: Any) -> Any:
    return p * (p - 1) / 4 * log(pi) + sum(lgamma(x - number / 2) for number in range(p))


def digamma(x: Any) -> Any:
    """Returns the derivative of the gamma function's logarithm."""
    torch = pytorch()
    y = torch.where(x < 0.5, 1 - x, x)
    shifted = -sum(1 / (y + k) for k in range(_SHIFT))
    w = y + _SHIFT
    square = 1 / (w * w)
    series = sum(-one / (2 * n) * square**n for n, one in enumerate(_BERNOULLI, 1))
    right = shifted + w.log() - 0.5 / w + series
    found = torch.where(x < 0.5, right - pi * _cos_pi(x) / _sin_pi(x), right)
    found = torch.where((x < 0) & (x == x.floor()), nan, found)
    return torch.where(x == 0, -1 / x, found)


_SHIFT = 10
"""Number of steps to arguments for which asymptotic series are exact."""

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""Bernoulli numbers B2, B4, …"""


def polygamma(n: int, x: Any) -> Any:
    """Returns a derivative of `digamma`, of order 0 to 4."""
    if n == 0:
        return _in_double(digamma)(x)
    return _in_double(partial(_polygamma, n))(x) if n <= _HIGHEST_ORDER else NotImplemented


_HIGHEST_ORDER = 4


def _polygamma(n: int, x: Any) -> Any:
    torch = pytorch()
    y = torch.where(x < 0.5, 1 - x, x)
    sign = -1 if n % 2 == 0 else 1
    total = sum(1 / (y + k) ** (n + 1) for k in range(_SHIFT))
    w = y + _SHIFT
    tail = w**-n / n + 0.5 * w ** -(n + 1)
    for k, one in enumerate(_BERNOULLI, 1):
        rising = factorial(n + 2 * k - 1) // factorial(n)
        tail = tail + one / factorial(2 * k) * rising * w ** -(n + 2 * k)
    right = sign * factorial(n) * (total + tail)
    # psi_n(x) = (-1)^n (psi_n(1 - x) + pi (d/dx)^n cot(pi x))
    reflected = (-1) ** n * right - pi ** (n + 1) * _cotangent(n, x)
    found = torch.where(x < 0.5, reflected, right)
    is_pole = (x <= 0) & (x == x.floor())
    return torch.where(is_pole, inf if n % 2 else nan, found)


def _cotangent(n: int, x: Any) -> Any:
    """Returns the n-th derivative of the cotangent at `pi x`."""
    sine, cosine = _sin_pi(x), _cos_pi(x)
    square, cot = 1 / (sine * sine), cosine / sine
    match n:
        case 1:
            return -square
        case 2:
            return 2 * cot * square
        case 3:
            return -2 * square * square - 4 * cot * cot * square
        case _:
            return 16 * cot * square * square + 8 * cot**3 * square


def _sin_pi(x: Any) -> Any:
    """Returns `sin(pi x)`, exactly 0 for integers."""
    rest = x - 2 * (x / 2).round()
    torch = pytorch()
    folded = torch.where(rest > 0.5, 1 - rest, torch.where(rest < -0.5, -1 - rest, rest))
    return (pi * folded).sin()


def _cos_pi(x: Any) -> Any:
    return _sin_pi(x + 0.5)


_CENTRAL = (
    (
        3.3871328727963666080e0,
        1.3314166789178437745e2,
        1.9715909503065514427e3,
        1.3731693765509461125e4,
        4.5921953931549871457e4,
        6.7265770927008700853e4,
        3.3430575583588128105e4,
        2.5090809287301226727e3,
    ),
    (
        1.0,
        4.2313330701600911252e1,
        6.8718700749205790830e2,
        5.3941960214247511077e3,
        2.1213794301586595867e4,
        3.9307895800092710610e4,
        2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)
_NEAR_TAIL = (
    (
        1.42343711074968357734e0,
        4.63033784615654529590e0,
        5.76949722146069140550e0,
        3.64784832476320460504e0,
        1.27045825245236838258e0,
        2.41780725177450611770e-1,
        2.27238449892691845833e-2,
        7.74545014278341407640e-4,
    ),
    (
        1.0,
        2.05319162663775882187e0,
        1.67638483018380384940e0,
        6.89767334985100004550e-1,
        1.48103976427480074590e-1,
        1.51986665636164571966e-2,
        5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)
_FAR_TAIL = (
    (
        6.65790464350110377720e0,
        5.46378491116411436990e0,
        1.78482653991729133580e0,
        2.96560571828504891230e-1,
        2.65321895265761230930e-2,
        1.24266094738807843860e-3,
        2.71155556874348757815e-5,
        2.01033439929228813265e-7,
    ),
    (
        1.0,
        5.99832206555887937690e-1,
        1.36929880922735805310e-1,
        1.48753612908506148525e-2,
        7.86869131145613259100e-4,
        1.84631831751005468180e-5,
        1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)
"""Rational approximations of the normal distribution's quantile: Wichura's algorithm AS 241,
https://doi.org/10.2307/2347330.
"""


def ndtri(p: Any) -> Any:
    """Returns the quantile of the normal distribution."""
    torch = pytorch()
    return _quantile(p - 0.5, torch.minimum(p, 1 - p))


def erfinv(x: Any) -> Any:
    """Returns the inverse of the error function."""
    return _quantile(x / 2, (1 - x.abs()) / 2) / sqrt(2)


def _quantile(q: Any, tail: Any) -> Any:
    """Returns the normal quantile of `0.5 + q`, `tail` from the nearer end."""
    torch = pytorch()
    r = (-tail.log()).sqrt()
    central = q * _rational(0.180625 - q * q, _CENTRAL)
    outer = torch.where(r <= 5, _rational(r - 1.6, _NEAR_TAIL), _rational(r - 5, _FAR_TAIL))
    outer = torch.where(tail == 0, inf, outer)
    outer = torch.where(q < 0, -outer, outer)
    return torch.where(tail < 0, nan, torch.where(q.abs() <= 0.425, central, outer))


def _rational(x: Any, coefficients: tuple[Sequence[float], Sequence[float]]) -> Any:
    numerator, denominator = (_polynomial(x, one) for one in coefficients)
    return numerator / denominator


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    result: Any = 0.0
    for one in reversed(coefficients):
        result = result * x + one
    return result


_NODES, _FEWEST_WAVES = 28, 32
"""Nodes of the integrals of Bessel functions, which are exact below the second number."""


def bessel_i(order: int, *, scaled: bool) -> Callable[[Any], Any]:
    """Returns the modified Bessel function of the first kind, of order 0 or 1.

    Args:
        order: the order.
        scaled: multiply by `exp(-|x|)`.
    """

    def function(x: Any) -> Any:
        torch = pytorch()
        size = x.abs()
        near = torch.where(size > _FEWEST_WAVES, _FEWEST_WAVES, size)
        angles = (torch.arange(_NODES, dtype=torch.float64) + 0.5) * (pi / _NODES)
        waves = angles.cos()
        values = (near.unsqueeze(-1) * (waves - 1)).exp()
        close = (values * waves if order else values).mean(-1)
        far = torch.where(size < _FEWEST_WAVES, _FEWEST_WAVES, size)
        distant = _hankel(order, far) / (2 * pi * far).sqrt()
        found = torch.where(size < _FEWEST_WAVES, close, distant)
        if order:
            found = torch.where(x < 0, -found, found)
        return (
            found if scaled else torch.where(size.isinf(), x if order else size, found * size.exp())
        )

    return function


def _hankel(order: int, x: Any) -> Any:
    """Returns the asymptotic series of `sqrt(2 pi x) exp(-x) I(x)`."""
    total = term = pytorch().ones_like(x)
    for k in range(1, 16):
        term = term * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * x)
        total = total + term
    return total


def chebyshev(kind: str, *, shifted: bool = False) -> Callable[[Any, Any], Any]:
    """Returns the Chebyshev polynomials of a kind, `t`, `u`, `v` or `w`, as functions of an angle.

    Args:
        kind: the kind.
        shifted: take `2x - 1` for `x`.
    """

    def function(x: Any, n: Any) -> Any:
        torch = pytorch()
        x, n = torch.broadcast_tensors(2 * x - 1 if shifted else x, n.trunc())
        inside = torch.where(x.abs() < 1, x, 0).acos()
        size = torch.where(x.abs() > 1, x.abs(), 1)
        outside = (size + (size * size - 1).sqrt()).log()
        is_odd = n - 2 * (n / 2).floor() == 1
        flip = torch.where((x < 0) & is_odd, -1.0, 1.0)
        if kind in "vw":  # at -x, one is the other
            swapped = _hyperbolic({"v": "w", "w": "v"}[kind], n, outside)
            larger = torch.where(x < 0, flip * swapped, _hyperbolic(kind, n, outside))
        else:
            larger = flip * _hyperbolic(kind, n, outside)
        found = torch.where(x.abs() < 1, _trigonometric(kind, n, inside), larger)
        found = torch.where(n < 0, 0, torch.where(n == 0, 1, found))
        return torch.where(x.isnan() & (n > 0), nan, found)

    return function


def _trigonometric(kind: str, n: Any, angle: Any) -> Any:
    half = angle / 2
    match kind:
        case "t":
            return (n * angle).cos()
        case "u":
            return ((n + 1) * angle).sin() / angle.sin()
        case "v":
            return ((n + 0.5) * angle).cos() / half.cos()
        case _:
            return ((n + 0.5) * angle).sin() / half.sin()


def _hyperbolic(kind: str, n: Any, angle: Any) -> Any:
    torch = pytorch()
    half = angle / 2
    match kind:
        case "t":
            return (n * angle).cosh()
        case "u":
            return torch.where(angle == 0, n + 1, ((n + 1) * angle).sinh() / angle.sinh())
        case "v":
            return ((n + 0.5) * angle).cosh() / half.cosh()
        case _:
            return torch.where(angle == 0, 2 * n + 1, ((n + 0.5) * angle).sinh() / half.sinh())


def decompositions(aten: Any) -> Mapping[Any, Callable[..., Any]]:
    """Returns the decompositions of special functions."""
    functions: dict[str, Callable[..., Any]] = {
        "lgamma": lgamma,
        "digamma": digamma,
        "erfinv": erfinv,
        "special_ndtri": ndtri,
        "i0": bessel_i(0, scaled=False),
        "special_i0e": bessel_i(0, scaled=True),
        "special_i1": bessel_i(1, scaled=False),
        "special_i1e": bessel_i(1, scaled=True),
        "special_modified_bessel_i0": bessel_i(0, scaled=False),
        "special_modified_bessel_i1": bessel_i(1, scaled=False),
    }
    for kind in "tuvw":
        name = f"chebyshev_polynomial_{kind}"
        functions[f"special_{name}"] = chebyshev(kind)
        functions[f"special_shifted_{name}"] = chebyshev(kind, shifted=True)
    found: dict[Any, Callable[..., Any]] = {
        aten.polygamma.default: polygamma,
        aten.mvlgamma.default: mvlgamma,
    }
    for name, function in functions.items():
        packet = getattr(aten, name)
        for overload in {"default", "x_scalar", "n_scalar"} & {*packet.overloads()}:
            found[getattr(packet, overload)] = _in_double(function)
    return found
