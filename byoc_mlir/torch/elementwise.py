"""Decompositions of element-wise operations."""

from __future__ import annotations

from math import inf, log, pi
from typing import Any

from byoc_mlir.torch.tensors import pytorch


def sign(x: Any) -> Any:
    """Returns the sign; 0 for NaN."""
    if x.dtype == pytorch().bool:
        return x.clone()
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


def copysign(x: Any, signed: Any) -> Any:
    """Returns the magnitude of `x` with the sign of `signed`."""
    x, signed = _as_floats(x, signed)
    return pytorch().where(_is_negative(signed), -x.abs(), x.abs())


def angle(x: Any) -> Any:
    """Returns the angle of a real number: 0, or pi for one below 0; NaN for NaN."""
    torch = pytorch()
    if x.is_complex():
        return NotImplemented
    (x,) = _as_floats(x)
    return torch.where(x.isnan(), x, torch.where(x < 0, pi, 0.0).to(x.dtype))


def atan2(y: Any, x: Any) -> Any:
    """Returns the angle; zeros and infinities have their signs."""
    torch = pytorch()
    y, x = _as_floats(y, x)
    ratio = torch.where((y == 0) & (x == 0), 0, y.abs() / x.abs())
    ratio = torch.where(y.isinf() & x.isinf(), 1, ratio)
    angle = torch.atan(ratio)
    angle = torch.where(_is_negative(x), pi - angle, angle)
    return torch.where(_is_negative(y), -angle, angle)


def hypot(a: Any, b: Any) -> Any:
    """Returns the length of a hypotenuse, without overflow in between."""
    torch = pytorch()
    more, less = torch.maximum(a.abs(), b.abs()), torch.minimum(a.abs(), b.abs())
    ratio = torch.where(more == 0, 0, less / more)
    length = more * torch.sqrt(1 + ratio * ratio)
    return torch.where(a.isinf() | b.isinf(), inf, length)


def fmax(a: Any, b: Any) -> Any:
    """Returns the larger number; the other one if one is NaN."""
    torch = pytorch()
    return torch.where(a.isnan(), b, torch.where(b.isnan(), a, torch.maximum(a, b)))


def fmin(a: Any, b: Any) -> Any:
    """Returns the smaller number; the other one if one is NaN."""
    torch = pytorch()
    return torch.where(a.isnan(), b, torch.where(b.isnan(), a, torch.minimum(a, b)))


def log_add_exp(a: Any, b: Any) -> Any:
    """Returns the logarithm of a sum, without exponentials that overflow."""
    torch = pytorch()
    kind, (a, b) = torch.result_type(a, b), operands(a, b)
    high = torch.maximum(a, b)
    rest = torch.log1p(torch.exp(torch.minimum(a, b) - high))
    return (high + torch.where(a == b, log(2), rest)).to(kind)


def log_add_exp_2(a: Any, b: Any) -> Any:
    """Returns what `log_add_exp` does, for base 2."""
    kind, (a, b) = pytorch().result_type(a, b), operands(a, b)
    return (log_add_exp(a * log(2), b * log(2)) / log(2)).to(kind)


def conjugate(x: Any) -> Any:
    """Returns the conjugate of complex numbers, and others as they are."""
    return pytorch().complex(x.real, -x.imag) if x.is_complex() else x.clone()


def _as_floats(*operands: Any) -> list[Any]:
    """Returns the operands in their common floating-point type."""
    torch = pytorch()
    kind = operands[0].dtype if len(operands) == 1 else torch.result_type(*operands)
    kind = kind if kind.is_floating_point else torch.get_default_dtype()
    return [one.to(kind) for one in operands]


def _is_negative(x: Any) -> Any:
    """Returns a mask of the elements with a sign, -0 among them."""
    return (x < 0) | (1 / x < 0)


def operands(*operands: Any) -> list[Any]:
    """Returns operands as tensors of the type in which PyTorch computes."""
    torch = pytorch()
    kind = torch.result_type(*operands)
    kind = torch.float32 if kind in (torch.float16, torch.bfloat16) else kind
    return [as_tensor(one, kind) for one in operands]


def as_tensor(value: Any, kind: Any) -> Any:
    """Returns a tensor or a number as a tensor of a type."""
    torch = pytorch()
    if isinstance(value, torch.Tensor):
        return value.to(kind)
    return torch.full((), value, dtype=kind)
