"""Element-wise ops: arithmetic, comparison, logic, rounding, casts."""

from __future__ import annotations

from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from byoc_mlir.dialects.relay import RelayOp, logic, transform
from byoc_mlir.dialects.relay import elementwise as relay
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value, dtype_of
from byoc_mlir.numpy_ops import integers

_UNARY: dict[str, type[RelayOp]] = {
    "Abs": relay.AbsOp,
    "Acos": relay.AcosOp,
    "Acosh": relay.AcoshOp,
    "Asin": relay.AsinOp,
    "Asinh": relay.AsinhOp,
    "Atan": relay.AtanOp,
    "Atanh": relay.AtanhOp,
    "BitwiseNot": logic.BitwiseNotOp,
    "Ceil": relay.CeilOp,
    "Cos": relay.CosOp,
    "Cosh": relay.CoshOp,
    "Erf": relay.ErfOp,
    "Exp": relay.ExpOp,
    "Floor": relay.FloorOp,
    "IsNaN": logic.IsnanOp,
    "Log": relay.LogOp,
    "Neg": relay.NegativeOp,
    "Not": logic.LogicalNotOp,
    "Round": relay.RoundOp,
    "Sigmoid": relay.SigmoidOp,
    "Sign": relay.SignOp,
    "Sin": relay.SinOp,
    "Sinh": relay.SinhOp,
    "Softsign": relay.SoftsignOp,
    "Sqrt": relay.SqrtOp,
    "Tan": relay.TanOp,
    "Tanh": relay.TanhOp,
}
_BINARY: dict[str, type[RelayOp]] = {
    "Add": relay.AddOp,
    "And": logic.LogicalAndOp,
    "Div": relay.DivideOp,
    "Equal": logic.EqualOp,
    "Greater": logic.GreaterOp,
    "Less": logic.LessOp,
    "Mul": relay.MultiplyOp,
    "Or": logic.LogicalOrOp,
    "Pow": relay.PowerOp,
    "Sub": relay.SubtractOp,
    "Xor": logic.LogicalXorOp,
}
_BINARY_WITHOUT_LEGACY: dict[str, type[RelayOp]] = {
    "BitwiseAnd": logic.BitwiseAndOp,
    "BitwiseOr": logic.BitwiseOrOp,
    "BitwiseXor": logic.BitwiseXorOp,
    "GreaterOrEqual": logic.GreaterEqualOp,
    "LessOrEqual": logic.LessEqualOp,
}
_VARIADIC: dict[str, type[RelayOp]] = {
    "Max": relay.MaximumOp,
    "Min": relay.MinimumOp,
    "Sum": relay.AddOp,
}


def _register_unary(op_type: str, op: type[RelayOp]) -> None:
    @onnx_op(op_type)
    def unary(context: NodeContext, data: Value) -> Value:
        return context.emit(op, data)

    del unary


def _register_binary(op_type: str, op: type[RelayOp], since: int = 1) -> None:
    @onnx_op(op_type, since=since)
    def binary(context: NodeContext, lhs: Value, rhs: Value) -> Value:
        return context.emit(op, lhs, rhs)

    del binary


def _register_legacy_binary(op_type: str, op: type[RelayOp]) -> None:
    @onnx_op(op_type)
    def legacy(
        context: NodeContext,
        lhs: Value,
        rhs: Value,
        *,
        broadcast: int = 0,
        axis: int | None = None,
    ) -> Value:
        return context.emit(op, lhs, _at_axis(context, rhs, lhs.rank, axis))

    del legacy


def _register_variadic(op_type: str, op: type[RelayOp]) -> None:
    @onnx_op(op_type)
    def variadic(context: NodeContext, *data: Value) -> Value:
        return reduce(lambda lhs, rhs: context.emit(op, lhs, rhs), data)

    del variadic


for _op_type, _op in _UNARY.items():
    _register_unary(_op_type, _op)
for _op_type, _op in _BINARY.items():
    _register_binary(_op_type, _op, since=7)
    _register_legacy_binary(_op_type, _op)
for _op_type, _op in _BINARY_WITHOUT_LEGACY.items():
    _register_binary(_op_type, _op)
for _op_type, _op in _VARIADIC.items():
    _register_variadic(_op_type, _op)


def cast(context: NodeContext, value: Value, dtype: np.dtype[Any]) -> Value:
    """Casts `value` to `dtype`; returns `value` itself if it has that type."""
    if value.dtype == dtype:
        return value
    if value.constant is not None:
        return context.derived(value, integers.convert(value.constant, dtype))
    return context.emit(relay.CastOp, value, dtype=relay_type(dtype))


def scalar(value: Value, number: float) -> np.generic:
    """Returns a number as a scalar of `value`'s element type."""
    return value.dtype.type(number)


def _at_axis(context: NodeContext, value: Value, rank: int, axis: int | None) -> Value:
    if axis is None:
        return value
    trailing = rank - axis % rank - value.rank
    if trailing <= 0:
        return value
    return context.emit(
        transform.ExpandDimsOp, value, axis=range(value.rank, value.rank + trailing)
    )


@onnx_op("Pow", since=12)
def power(context: NodeContext, base: Value, exponent: Value) -> Value:
    if base.dtype == exponent.dtype:
        return context.emit(relay.PowerOp, base, exponent)
    wide = _type_of_power(base.dtype, exponent)
    operands = (cast(context, value, wide) for value in (base, exponent))
    return cast(context, context.emit(relay.PowerOp, *operands), base.dtype)


def _type_of_power(base: np.dtype[Any], exponent: Value) -> np.dtype[Any]:
    """Returns a type that represents both base and exponent, in which to compute a power.

    The result is then cast to the base's type. For example, for an integer 4 to the power of 0.5,
    the type must be a float. For -1 to the power of 2^24 + 1, it must not be `float32`, which
    cannot represent the exponent.
    """
    if base.kind in "iu" and exponent.dtype.kind in "iu":
        # integers modulo the width are the same with a sign and without
        return np.dtype(f"{exponent.dtype.kind}{max(base.itemsize, exponent.dtype.itemsize)}")
    if base.kind not in "iu" and _fits(exponent, base):
        return base
    return np.result_type(*map(_promotable, (base, exponent.dtype)))


def _fits(value: Value, dtype: np.dtype[Any]) -> bool:
    """True if a type represents all elements of a constant exactly."""
    if value.constant is None:
        return False
    there = integers.convert(value.constant, dtype)
    return np.array_equal(integers.convert(there, value.dtype), value.constant)


def _promotable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns `f32` for bf16, which numpy cannot promote; returns other types unchanged."""
    return np.dtype(np.float32) if dtype == ml_dtypes.bfloat16 else dtype


@onnx_op("Mean")
def mean(context: NodeContext, *data: Value) -> Value:
    total = reduce(lambda lhs, rhs: context.emit(relay.AddOp, lhs, rhs), data)
    return context.emit(relay.DivideOp, total, scalar(total, len(data)))


@onnx_op("Mod")
def mod(context: NodeContext, lhs: Value, rhs: Value, *, fmod: int = 0) -> Value:
    return context.emit(relay.ModOp if fmod else relay.FloorModOp, lhs, rhs)


@onnx_op("BitShift")
def bit_shift(context: NodeContext, lhs: Value, rhs: Value, *, direction: str) -> Value:
    return context.emit(logic.LeftShiftOp if direction == "LEFT" else logic.RightShiftOp, lhs, rhs)


@onnx_op("Where")
def where(context: NodeContext, condition: Value, x: Value, y: Value) -> Value:
    return context.emit(relay.WhereOp, condition, x, y)


@onnx_op("IsInf")
def is_inf(
    context: NodeContext, data: Value, *, detect_negative: int = 1, detect_positive: int = 1
) -> Value:
    if detect_negative and detect_positive:
        return context.emit(logic.IsinfOp, data)
    if detect_positive:
        return context.emit(logic.EqualOp, data, scalar(data, float("inf")))
    if detect_negative:
        return context.emit(logic.EqualOp, data, scalar(data, float("-inf")))
    return context.emit(transform.BroadcastToOp, np.bool_(False), shape=data.sizes)


@onnx_op("Reciprocal")
def reciprocal(context: NodeContext, data: Value) -> Value:
    return context.emit(relay.DivideOp, scalar(data, 1), data)


@onnx_op("Celu")
def celu(context: NodeContext, data: Value, *, alpha: float = 1.0) -> Value:
    # the body in the standard makes a vector of a scalar
    scale = scalar(data, alpha)
    growth = context.emit(relay.ExpOp, context.emit(relay.DivideOp, data, scale))
    below = context.emit(relay.SubtractOp, growth, scalar(data, 1))
    is_below = context.emit(logic.LessOp, data, scalar(data, 0))
    return context.emit(relay.WhereOp, is_below, context.emit(relay.MultiplyOp, below, scale), data)


@onnx_op("Softplus")
def softplus(context: NodeContext, data: Value) -> Value:
    result = context.emit(relay.Log1pOp, context.emit(relay.ExpOp, data))
    # where the exponential overflows the result is the operand
    limit = np.floor(np.log(float(ml_dtypes.finfo(data.dtype).max)))
    bound = context.emit(relay.MaximumOp, data, scalar(data, limit))
    return context.emit(relay.MinimumOp, result, bound)


@onnx_op("Cast", since=6)
def cast_node(
    context: NodeContext, data: Value, *, to: int, saturate: int = 1, round_mode: str = "up"
) -> Value:
    return _cast_to(context, data, _dtype(to), saturate, round_mode)


@onnx_op("Cast")
def cast_by_name(context: NodeContext, data: Value, *, to: str) -> Value:
    return cast(context, data, _dtype(onnx.TensorProto.DataType.Value(to.upper())))


@onnx_op("CastLike")
def cast_like(
    context: NodeContext,
    data: Value,
    target: Value,
    *,
    saturate: int = 1,
    round_mode: str = "up",
) -> Value:
    return _cast_to(context, data, target.dtype, saturate, round_mode)


_SATURATING = frozenset(
    np.dtype(kind)
    for kind in (
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    )
)
_EXPONENT = np.dtype(ml_dtypes.float8_e8m0fnu)


def _dtype(element_type: int) -> np.dtype[Any]:
    if element_type == onnx.TensorProto.STRING:
        raise NodeRefused("casts to strings are not supported")
    return dtype_of(element_type)


def _cast_to(
    context: NodeContext, data: Value, dtype: np.dtype[Any], saturate: int, round_mode: str
) -> Value:
    if data.dtype == object:
        raise NodeRefused("casts of strings are not supported")
    if data.dtype == dtype:
        return data
    if dtype == _EXPONENT:
        return _cast_to_exponent(context, data, saturate, round_mode)
    if dtype in _SATURATING and saturate and data.dtype.kind not in "iub":
        most = float(ml_dtypes.finfo(dtype).max)
        wide = cast(context, data, np.dtype(np.float32)) if data.dtype.itemsize == 1 else data
        data = context.emit(relay.ClipOp, wide, a_min=-most, a_max=most)
    return cast(context, data, dtype)


def _cast_to_exponent(context: NodeContext, data: Value, saturate: int, round_mode: str) -> Value:
    """Casts to a type of powers of two: the nearest one, corrected by a factor of two as
    `round_mode` requires.
    """
    wide = cast(context, data, np.dtype(np.float32))
    if saturate:
        info = ml_dtypes.finfo(_EXPONENT)
        low, high = float(info.smallest_normal), float(info.max)
        wide = context.emit(relay.ClipOp, wide, a_min=low, a_max=high)
    nearest = cast(context, wide, _EXPONENT)
    if round_mode == "nearest":
        return nearest
    power = cast(context, nearest, np.dtype(np.float32))
    if round_mode == "up":
        is_wrong, factor = context.emit(logic.LessOp, power, wide), np.float32(2)
    else:
        is_wrong, factor = context.emit(logic.GreaterOp, power, wide), np.float32(0.5)
    other = context.emit(relay.MultiplyOp, power, factor)
    return cast(context, context.emit(relay.WhereOp, is_wrong, other, power), _EXPONENT)


@onnx_op("Clip", since=11)
def clip(
    context: NodeContext, data: Value, low: Value | None = None, high: Value | None = None
) -> Value:
    bounds = [bound for bound in (low, high) if bound is not None and bound.constant is not None]
    if data.dtype.kind == "f" and len(bounds) == 2:
        a_min, a_max = (float(context.number(bound, "a bound")) for bound in bounds)
        if a_min <= a_max:
            return context.emit(relay.ClipOp, data, a_min=a_min, a_max=a_max)
    if low is not None:
        data = context.emit(relay.MaximumOp, data, low)
    if high is not None:
        data = context.emit(relay.MinimumOp, data, high)
    return data


@onnx_op("Clip")
def clip_by_attributes(
    context: NodeContext,
    data: Value,
    *,
    min: float = float(np.finfo(np.float32).min),
    max: float = float(np.finfo(np.float32).max),
) -> Value:
    return context.emit(relay.ClipOp, data, a_min=min, a_max=max)
