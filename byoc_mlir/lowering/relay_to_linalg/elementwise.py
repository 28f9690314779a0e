"""Element-wise `relay` ops: a table from op to the scalar it computes."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.dialects.relay import ConstantOp, logic, nn
from byoc_mlir.dialects.relay import elementwise as relay
from byoc_mlir.dialects.relay.base import RelayOp, rank_of, sizes_of, tensor_type
from byoc_mlir.dims import Size
from byoc_mlir.lowering.relay_to_linalg.builder import (
    Body,
    LinalgBuilder,
    Lowering,
    Lowerings,
)
from byoc_mlir.lowering.relay_to_linalg.computed_types import Kind, bounds
from byoc_mlir.lowering.relay_to_linalg.scalars import (
    Scalars,
    constant_power,
    floor_remainder,
    power,
    remainder,
)


def _named(name: str) -> Body:
    return lambda s, x, y: s.binary(name, x, y)


def _compare(predicate: str) -> Body:
    return lambda s, x, y: s.compare(predicate, x, y)


def _bits(op: type[Operation]) -> Body:
    return lambda s, x, y: s.emit(op.create(operands=[x, y], result_types=[x.type]))


def _math(op: type[Operation]) -> Body:
    return lambda s, x: s.unary(op, x)


def _rounding(op: type[Operation]) -> Body:
    return lambda s, x: s.unary(op, x) if s.kind is Kind.FLOAT else x


def _shift(name: str) -> Body:
    """Returns the body of a shift; a shift by the width or more equals that many shifts by one
    bit.
    """

    def body(s: Scalars, x: SSAValue, count: SSAValue) -> SSAValue:
        assert isinstance(x.type, IntegerType)
        width = x.type.width.data
        last = s.like(width - 1, count)
        clamped = s.emit(arith.MinUIOp(count, last))
        too_far = s.emit(arith.CmpiOp(count, last, "ugt"))
        if name == "shr" and s.kind is Kind.SIGNED:
            return s.binary("shr", x, clamped)
        shifted = s.binary("shr", x, clamped) if name == "shr" else _shl(s, x, clamped)
        return s.select(too_far, s.like(0, x), shifted)

    return body


def _shl(s: Scalars, x: SSAValue, count: SSAValue) -> SSAValue:
    return s.emit(arith.ShLIOp(x, count))


def _negative(s: Scalars, x: SSAValue) -> SSAValue:
    return s.unary(arith.NegfOp, x) if s.kind is Kind.FLOAT else s.sub(s.like(0, x), x)


def _abs(s: Scalars, x: SSAValue) -> SSAValue:
    if s.kind is Kind.FLOAT:
        return s.unary(math.AbsFOp, x)
    return x if s.kind is Kind.UNSIGNED else s.unary(math.AbsIOp, x)


def _sign(s: Scalars, x: SSAValue) -> SSAValue:
    zero, one = s.like(0, x), s.like(1, x)
    positive = s.select(s.compare("gt", x, zero), one, x)
    if s.kind is Kind.UNSIGNED:
        return positive
    return s.select(s.compare("lt", x, zero), s.like(-1, x), positive)


def _sigmoid(s: Scalars, x: SSAValue) -> SSAValue:
    one = s.like(1, x)
    return s.div(one, s.add(one, s.unary(math.ExpOp, s.unary(arith.NegfOp, x))))


def _softsign(s: Scalars, x: SSAValue) -> SSAValue:
    return s.div(x, s.add(s.like(1, x), s.unary(math.AbsFOp, x)))


def _logical_not(s: Scalars, x: SSAValue) -> SSAValue:
    return s.emit(arith.XOrIOp(x, s.like(1, x)))


def _bitwise_not(s: Scalars, x: SSAValue) -> SSAValue:
    return s.emit(arith.XOrIOp(x, s.like(-1, x)))


def _isnan(s: Scalars, x: SSAValue) -> SSAValue:
    return s.emit(arith.CmpfOp(x, x, "uno"))


def _isinf(s: Scalars, x: SSAValue) -> SSAValue:
    return s.compare("eq", s.unary(math.AbsFOp, x), s.like(pymath.inf, x))


def _relu(s: Scalars, x: SSAValue) -> SSAValue:
    return s.max(x, s.like(0, x))


def _prelu(s: Scalars, x: SSAValue, slope: SSAValue) -> SSAValue:
    return s.select(s.compare("lt", x, s.like(0, x)), s.mul(slope, x), x)


BODIES: dict[type[RelayOp], Body] = {
    relay.AddOp: _named("add"),
    relay.SubtractOp: _named("sub"),
    relay.MultiplyOp: _named("mul"),
    relay.MaximumOp: _named("max"),
    relay.MinimumOp: _named("min"),
    logic.LogicalAndOp: _bits(arith.AndIOp),
    logic.LogicalOrOp: _bits(arith.OrIOp),
    logic.LogicalXorOp: _bits(arith.XOrIOp),
    logic.BitwiseAndOp: _bits(arith.AndIOp),
    logic.BitwiseOrOp: _bits(arith.OrIOp),
    logic.BitwiseXorOp: _bits(arith.XOrIOp),
    logic.LeftShiftOp: _shift("shl"),
    logic.RightShiftOp: _shift("shr"),
    logic.EqualOp: _compare("eq"),
    logic.NotEqualOp: _compare("ne"),
    logic.LessOp: _compare("lt"),
    logic.LessEqualOp: _compare("le"),
    logic.GreaterOp: _compare("gt"),
    logic.GreaterEqualOp: _compare("ge"),
    relay.NegativeOp: _negative,
    relay.AbsOp: _abs,
    relay.SignOp: _sign,
    relay.ExpOp: _math(math.ExpOp),
    relay.LogOp: _math(math.LogOp),
    relay.Log1pOp: _math(math.Log1pOp),
    relay.SqrtOp: _math(math.SqrtOp),
    relay.RsqrtOp: _math(math.RsqrtOp),
    relay.TanhOp: _math(math.TanhOp),
    relay.SigmoidOp: _sigmoid,
    relay.SoftsignOp: _softsign,
    relay.ErfOp: _math(math.ErfOp),
    relay.SinOp: _math(math.SinOp),
    relay.CosOp: _math(math.CosOp),
    relay.TanOp: _math(math.TanOp),
    relay.AsinOp: _math(math.AsinOp),
    relay.AcosOp: _math(math.AcosOp),
    relay.AtanOp: _math(math.AtanOp),
    relay.SinhOp: _math(math.SinhOp),
    relay.CoshOp: _math(math.CoshOp),
    relay.AsinhOp: _math(math.AsinhOp),
    relay.AcoshOp: _math(math.AcoshOp),
    relay.AtanhOp: _math(math.AtanhOp),
    relay.CeilOp: _rounding(math.CeilOp),
    relay.FloorOp: _rounding(math.FloorOp),
    relay.RoundOp: _rounding(math.RoundEvenOp),
    logic.LogicalNotOp: _logical_not,
    logic.BitwiseNotOp: _bitwise_not,
    logic.IsnanOp: _isnan,
    logic.IsinfOp: _isinf,
    nn.ReluOp: _relu,
    nn.PreluOp: _prelu,
}
"""Scalar body of each op whose operands broadcast against each other."""


def _lower_elementwise(op: RelayOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    """Lowers an op of `BODIES` to one `linalg.generic` over the broadcast operands."""
    return [b.elementwise(op.operands, tensor_type(op.results[0]), BODIES[type(op)])]


def _square(s: Scalars, x: SSAValue) -> SSAValue:
    return s.mul(x, x)


def _reciprocal(s: Scalars, x: SSAValue) -> SSAValue:
    return s.div(s.like(1, x), x)


def _square_root(s: Scalars, x: SSAValue) -> SSAValue:
    """Emits `x ** 0.5` as `pow` defines it: 0 for -0, and infinity for minus infinity."""
    infinity = s.like(pymath.inf, x)
    root = s.unary(math.SqrtOp, s.add(x, s.like(0, x)))
    return s.select(s.compare("eq", x, s.like(-pymath.inf, x)), infinity, root)


_KNOWN_POWERS: dict[float, Body] = {
    2: _square,
    3: lambda s, x: s.mul(_square(s, x), x),
    4: lambda s, x: _square(s, _square(s, x)),
    -1: _reciprocal,
    -2: lambda s, x: _reciprocal(s, _square(s, x)),
    0.5: _square_root,
    -0.5: lambda s, x: _reciprocal(s, _square_root(s, x)),
}
"""Bodies of powers of floats by their constant exponent; any other power calls the C library."""
_MOST_CONSTANT_EXPONENT = 64
"""Maximum constant exponent of integers that becomes a chain of multiplications."""


def _lower_power(op: relay.PowerOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    type_ = tensor_type(op.output)
    body = _known_power(type_.element_type, _number_everywhere(op.rhs))
    if body is None:
        return [b.elementwise([op.lhs, op.rhs], type_, power)]
    return [b.elementwise([op.lhs], type_, body)]


def needs_power_function(op: relay.PowerOp) -> bool:
    """True if the lowering of a power calls the C library."""
    element = tensor_type(op.output).element_type
    return (
        isinstance(element, AnyFloat) and _known_power(element, _number_everywhere(op.rhs)) is None
    )


def _known_power(element_type: Attribute, exponent: float) -> Body | None:
    if isinstance(element_type, AnyFloat):
        return _KNOWN_POWERS.get(exponent)
    if exponent in range(_MOST_CONSTANT_EXPONENT + 1):
        return lambda s, x: constant_power(s, x, int(exponent))
    return None


def _division(body: Callable[[Scalars, SSAValue, SSAValue], SSAValue]) -> Lowering:
    """Returns the lowering of a division.

    A constant integer divisor becomes a constant of the body, so that LLVM converts the division to
    a multiplication.
    """

    def lower(op: relay.BroadcastOp, b: LinalgBuilder) -> Sequence[SSAValue]:
        type_, divisor = tensor_type(op.output), _number_everywhere(op.rhs)
        if isinstance(type_.element_type, AnyFloat) or pymath.isnan(divisor):
            return [b.elementwise([op.lhs, op.rhs], type_, body)]
        return [b.elementwise([op.lhs], type_, lambda s, x: body(s, x, s.like(divisor, x)))]

    return lower


def _number_everywhere(value: SSAValue) -> float:
    """Returns the value that all elements of a constant have, or NaN for other values."""
    constant = value.owner
    if not isinstance(constant, ConstantOp) or not constant.array.size:
        return pymath.nan
    first = constant.array.flat[0]
    return first.item() if bool((constant.array == first).all()) else pymath.nan


def _lower_clip(op: relay.ClipOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    type_ = tensor_type(op.output)
    least, greatest = bounds(type_.element_type)
    low, high = op.a_min.value.data, op.a_max.value.data

    def body(s: Scalars, x: SSAValue) -> SSAValue:
        raised = s.max(x, s.like(low, x)) if low > least else x
        return s.min(raised, s.like(high, x)) if high < greatest else raised

    return [b.elementwise([op.data], type_, body)]


def _lower_cast(op: relay.CastOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    return [b.cast(op.data, op.dtype)]


def _lower_where(op: relay.WhereOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    type_ = tensor_type(op.output)
    values = [op.condition, op.x, op.y]
    return [b.elementwise(values, type_, lambda s, c, x, y: s.select(c, x, y))]


def _lower_leaky_relu(op: nn.LeakyReluOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    alpha = op.alpha.value.data
    return [
        b.elementwise(
            [op.data], tensor_type(op.output), lambda s, x: _prelu(s, x, s.like(alpha, x))
        )
    ]


def channel_shape(rank: int, axis: int, size: Size) -> list[Size]:
    """Returns the shape with which a `[C]` vector broadcasts along `axis`."""
    return [size if position == axis else 1 for position in range(rank)]


def along(b: LinalgBuilder, vector: SSAValue, data: SSAValue, axis: int) -> SSAValue:
    """Reshapes a `[C]` vector so that it broadcasts against `data` along `axis`."""
    shape = channel_shape(rank_of(data), axis, sizes_of(vector)[0])
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return b.reshape(vector, shape)


def _lower_bias_add(op: nn.BiasAddOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    bias = along(b, op.bias, op.data, op.positive_axis)
    return [b.elementwise([op.data, bias], tensor_type(op.output), lambda s, x, y: s.add(x, y))]


def _lower_batch_norm(op: nn.BatchNormOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    per_channel = [op.gamma, op.beta, op.moving_mean, op.moving_var]
    vectors = [along(b, value, op.data, op.positive_axis) for value in per_channel]
    epsilon = op.epsilon.value.data

    def body(
        s: Scalars, x: SSAValue, gamma: SSAValue, beta: SSAValue, mean: SSAValue, var: SSAValue
    ) -> SSAValue:
        deviation = s.unary(math.SqrtOp, s.add(var, s.like(epsilon, var)))
        return s.add(s.mul(s.div(s.sub(x, mean), deviation), gamma), beta)

    output = b.elementwise([op.data, *vectors], tensor_type(op.output), body)
    return [output, op.moving_mean, op.moving_var]


FUNCTIONS: Lowerings = {
    **dict.fromkeys(BODIES, _lower_elementwise),
    relay.DivideOp: _division(lambda s, x, y: s.div(x, y)),
    relay.ModOp: _division(remainder),
    relay.FloorModOp: _division(floor_remainder),
    relay.PowerOp: _lower_power,
    relay.ClipOp: _lower_clip,
    relay.CastOp: _lower_cast,
    relay.WhereOp: _lower_where,
    nn.LeakyReluOp: _lower_leaky_relu,
    nn.BiasAddOp: _lower_bias_add,
    nn.BatchNormOp: _lower_batch_norm,
}
