"""Numpy semantics of the element-wise ops; see `evaluate`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import elementwise as relay
from byoc_mlir.dialects.relay import integers, logic
from byoc_mlir.dialects.relay.base import RelayOp, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.tensors import Array


def widened(array: Array) -> Array:
    """Half precision as f32, everything else as it is."""
    is_half = array.dtype.itemsize <= 2 and array.dtype.kind not in "iub"
    return array.astype(np.float32) if is_half else array


def element_dtype(value: SSAValue) -> np.dtype[Any]:
    """The dtype of the arrays that a value stands for."""
    return numpy_dtype(tensor_type(value).element_type)


def _in_float(function: Callable[..., Any]) -> Callable[..., Array]:
    """`function` on widened operands, rounded to the first operand's type."""

    def apply(op: RelayOp, *operands: Array) -> Array:
        result = function(*(widened(operand) for operand in operands))
        return np.asarray(result).astype(operands[0].dtype)

    return apply


def _to_bool(function: Callable[..., Any]) -> Callable[..., Array]:
    def apply(op: RelayOp, *operands: Array) -> Array:
        return np.asarray(function(*operands), np.bool_)

    return apply


def _by_kind(
    integers_: Callable[..., Array], floats: Callable[..., Any]
) -> Callable[[Array, Array], Any]:
    """A function of two arrays of one type: integers have their own."""

    def apply(lhs: Array, rhs: Array) -> Any:
        return (integers_ if lhs.dtype.kind in "iu" else floats)(lhs, rhs)

    return apply


_erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(data: Array) -> Array:
    """`1 / (1 + exp(-data))`, without overflow."""
    decay = np.exp(-np.abs(data))
    return np.where(data >= 0, 1 / (1 + decay), decay / (1 + decay))


def _negative(data: Array) -> Array:
    return np.zeros_like(data) - data if data.dtype.kind == "u" else np.negative(data)


def _rsqrt(data: Array) -> Array:
    return 1 / np.sqrt(data)


def _clip(op: relay.ClipOp, data: Array) -> Array:
    low, high = op.a_min.value.data, op.a_max.value.data
    return np.minimum(np.maximum(data, data.dtype.type(low)), data.dtype.type(high))


def _cast(op: relay.CastOp, data: Array) -> Array:
    return integers.convert(data, numpy_dtype(op.dtype))


def _where(op: relay.WhereOp, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


_FLOAT: dict[type[RelayOp], Callable[..., Any]] = {
    relay.AbsOp: np.abs,
    relay.AcosOp: np.arccos,
    relay.AcoshOp: np.arccosh,
    relay.AddOp: np.add,
    relay.AsinOp: np.arcsin,
    relay.AsinhOp: np.arcsinh,
    relay.AtanOp: np.arctan,
    relay.AtanhOp: np.arctanh,
    logic.BitwiseAndOp: np.bitwise_and,
    logic.BitwiseNotOp: np.invert,
    logic.BitwiseOrOp: np.bitwise_or,
    logic.BitwiseXorOp: np.bitwise_xor,
    relay.CeilOp: np.ceil,
    relay.CosOp: np.cos,
    relay.CoshOp: np.cosh,
    relay.DivideOp: _by_kind(integers.divide, np.divide),
    relay.ErfOp: _erf,
    relay.ExpOp: np.exp,
    relay.FloorModOp: _by_kind(integers.floor_remainder, np.mod),
    relay.FloorOp: np.floor,
    logic.LeftShiftOp: np.left_shift,
    relay.LogOp: np.log,
    relay.Log1pOp: np.log1p,
    relay.MaximumOp: np.maximum,
    relay.MinimumOp: np.minimum,
    relay.ModOp: _by_kind(integers.remainder, np.fmod),
    relay.MultiplyOp: np.multiply,
    relay.NegativeOp: _negative,
    relay.PowerOp: _by_kind(integers.power, np.power),
    logic.RightShiftOp: np.right_shift,
    relay.RoundOp: np.rint,
    relay.RsqrtOp: _rsqrt,
    relay.SigmoidOp: sigmoid,
    relay.SignOp: np.sign,
    relay.SinhOp: np.sinh,
    relay.SinOp: np.sin,
    relay.SqrtOp: np.sqrt,
    relay.SubtractOp: np.subtract,
    relay.TanhOp: np.tanh,
    relay.TanOp: np.tan,
}
_BOOL: dict[type[RelayOp], Callable[..., Any]] = {
    logic.EqualOp: np.equal,
    logic.GreaterEqualOp: np.greater_equal,
    logic.GreaterOp: np.greater,
    logic.IsinfOp: np.isinf,
    logic.IsnanOp: np.isnan,
    logic.LessEqualOp: np.less_equal,
    logic.LessOp: np.less,
    logic.LogicalAndOp: np.logical_and,
    logic.LogicalNotOp: np.logical_not,
    logic.LogicalOrOp: np.logical_or,
    logic.LogicalXorOp: np.logical_xor,
    logic.NotEqualOp: np.not_equal,
}

ELEMENTWISE: dict[type[RelayOp], Callable[..., Array]] = {
    **{op: _in_float(function) for op, function in _FLOAT.items()},
    **{op: _to_bool(function) for op, function in _BOOL.items()},
    relay.CastOp: _cast,
    relay.ClipOp: _clip,
    relay.WhereOp: _where,
}
