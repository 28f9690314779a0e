"""Matching of layer norms in the decomposed form that exporters write."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.partition.activations import Reader
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.elementwise import (
    AddOp,
    DivideOp,
    MultiplyOp,
    RsqrtOp,
    SqrtOp,
    SubtractOp,
)
from byoc_mlir.dialects.relay.reduce import MeanOp
from byoc_mlir.patterns import Pattern, is_constant, is_expr, is_op, wildcard


@dataclass(frozen=True)
class LayerNorm:
    """`(data - mean) / sqrt(variance + epsilon) * gamma + beta` over the last dimension."""

    data: SSAValue
    gamma: SSAValue
    beta: SSAValue
    epsilon: float


def layer_norm_pattern() -> Pattern:
    """Returns the pattern `c / sqrt(mean(c²) + epsilon) * gamma + beta` for `c = x - mean(x)`."""
    x = wildcard()
    centred = x - is_op("mean")(x)
    square = is_op("power")(centred, is_constant()) | centred * centred
    shifted = is_op("mean")(square) + is_constant()
    root = is_op("sqrt")(shifted)
    inverse = is_op("rsqrt")(shifted) | is_expr(1.0) / root
    normed = centred / root | centred * inverse
    return normed * is_constant() + is_constant()


def read_layer_norm(reader: Reader, value: SSAValue) -> LayerNorm | None:
    """Matches a layer norm that ends in `value`, and checks its axes, powers and shapes."""
    outer = reader.owner(value)
    if not isinstance(outer, AddOp):
        return None
    scaled, beta = _with_constant(reader, outer)
    inner = reader.owner(scaled)
    if not isinstance(inner, MultiplyOp):
        return None
    normed, gamma = _with_constant(reader, inner)
    found = _normalised(reader, normed)
    if found is None:
        return None
    data, epsilon = found
    channels = shape_of(data)[-1:]
    if shape_of(gamma) != channels or shape_of(beta) != channels:
        return None
    return LayerNorm(data, gamma, beta, epsilon)


def _with_constant(reader: Reader, op: AddOp | MultiplyOp) -> tuple[SSAValue, SSAValue]:
    """Returns the two operands of a commutative op, the constant operand second."""
    lhs, rhs = reader.resolve(op.lhs), reader.resolve(op.rhs)
    return (rhs, lhs) if isinstance(lhs.owner, ConstantOp) else (lhs, rhs)


def _normalised(reader: Reader, value: SSAValue) -> tuple[SSAValue, float] | None:
    """Returns `(x, epsilon)` for `c / sqrt(mean(c²) + epsilon)` with `c = x - mean(x)`."""
    parts = _over_deviation(reader, value)
    if parts is None:
        return None
    centred, variance = parts
    data, shifted = _centred(reader, centred), reader.shifted(variance)
    if data is None or shifted is None:
        return None
    square = _mean_of(reader, shifted[0])
    found = reader.activation(square) if square is not None else None
    if found is None or found.algorithm != "square" or found.data is not centred:
        return None
    return data, shifted[1]


def _over_deviation(reader: Reader, value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """Returns `(c, v)` for `c / sqrt(v)`, `c * rsqrt(v)` or `c * (1 / sqrt(v))`."""
    op = reader.owner(value)
    if isinstance(op, DivideOp):
        root = reader.owner(op.rhs)
        if isinstance(root, SqrtOp):
            return reader.resolve(op.lhs), reader.resolve(root.data)
    if isinstance(op, MultiplyOp):
        for centred, factor in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            variance = _under_inverse_root(reader, factor)
            if variance is not None:
                return reader.resolve(centred), variance
    return None


def _under_inverse_root(reader: Reader, value: SSAValue) -> SSAValue | None:
    """Returns `v` for `rsqrt(v)` or `1 / sqrt(v)`."""
    op = reader.owner(value)
    if isinstance(op, DivideOp) and reader.number(op.lhs) == 1.0:
        root = reader.owner(op.rhs)
        return reader.resolve(root.data) if isinstance(root, SqrtOp) else None
    return reader.resolve(op.data) if isinstance(op, RsqrtOp) else None


def _centred(reader: Reader, value: SSAValue) -> SSAValue | None:
    op = reader.owner(value)
    if not isinstance(op, SubtractOp):
        return None
    data = reader.resolve(op.lhs)
    return data if _mean_of(reader, op.rhs) is data else None


def _mean_of(reader: Reader, value: SSAValue) -> SSAValue | None:
    """Returns `x` if the value is the mean of `x` over the last dimension, or `None`."""
    op = reader.owner(value)
    if not isinstance(op, MeanOp) or not op.keepdims.value.data:
        return None
    rank = len(shape_of(op.data))
    return reader.resolve(op.data) if op.axes == (rank - 1,) else None
