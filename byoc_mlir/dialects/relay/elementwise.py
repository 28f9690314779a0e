"""Element-wise arithmetic and functions: binary ops broadcast as numpy does."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import overload

from xdsl.dialects.builtin import AnyFloat, TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, traits_def
from xdsl.traits import Commutative
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.operations import define_op
from byoc_mlir.dialects.relay.base import (
    DYNAMIC,
    DataOp,
    OneResultOp,
    Tensor,
    float_prop,
    sizes_of,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.shape import same
from byoc_mlir.dims import Dim, Size


@overload
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]: ...


@overload
def broadcast_shapes(*shapes: Sequence[Size]) -> tuple[Size, ...]: ...


def broadcast_shapes(*shapes: Sequence[Size]) -> tuple[Size, ...]:
    """Returns the shape of numpy broadcasting; unknown dimensions stay unknown.

    Raises:
        VerifyException: two dimensions differ and neither is 1.
        UndecidedSizeError: symbolic dimensions may differ.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Size] = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, start=rank - len(shape)):
            common = _broadcast_size(result[axis], size)
            if common is None:
                listed = ", ".join(str(list(other)) for other in shapes)
                raise VerifyException(f"shapes {listed} do not broadcast")
            result[axis] = common
    return tuple(result)


def _broadcast_size(one: Size, two: Size) -> Size | None:
    """Returns the size that two dimensions broadcast to; `None` if they do not broadcast."""
    if two == 1 or one == two:
        return one
    if one == 1:
        return two
    if DYNAMIC in (one, two):
        return two if one == DYNAMIC else one
    if same(one, two):
        return two if isinstance(one, Dim) else one
    if isinstance(one, Dim) and same(one, 1):
        return two
    return one if isinstance(two, Dim) and same(two, 1) else None


class UnaryOp(DataOp, ABC):
    """`data [...] -> output [...]`, shape and element type unchanged."""

    def infer_types(self) -> Sequence[Attribute]:
        return (self.data.type,)


def check_float(op: Operation, value: SSAValue) -> None:
    """Checks that a tensor has floats.

    Raises:
        VerifyException: its elements are integers or booleans.
    """
    element = tensor_type(value).element_type
    if not isinstance(element, AnyFloat):
        raise VerifyException(f"{op.name}: expected floats, found elements of type {element}")


class FloatUnaryOp(UnaryOp, ABC):
    """`data [...] -> output [...]` of floats."""

    def infer_types(self) -> Sequence[Attribute]:
        check_float(self, self.data)
        return super().infer_types()


class BroadcastOp(OneResultOp, ABC):
    """`lhs [...], rhs [...] -> output [...]` with numpy broadcasting, one element type."""

    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)

    def broadcast_type(self) -> Tensor:
        """Returns the broadcast of the operand types."""
        lhs, rhs = tensor_type(self.lhs), tensor_type(self.rhs)
        if lhs.element_type != rhs.element_type:
            raise VerifyException(
                f"{self.name}: expected operands of one element type,"
                f" found {lhs.element_type} and {rhs.element_type}"
            )
        return tensor_of(lhs.element_type, broadcast_shapes(type_sizes(lhs), type_sizes(rhs)))

    def infer_types(self) -> Sequence[Attribute]:
        return (self.broadcast_type(),)


@irdl_op_definition
class AddOp(BroadcastOp):
    """`lhs + rhs`."""

    name = "relay.add"
    traits = traits_def(Commutative())


@irdl_op_definition
class SubtractOp(BroadcastOp):
    """`lhs - rhs`."""

    name = "relay.subtract"


@irdl_op_definition
class MultiplyOp(BroadcastOp):
    """`lhs * rhs`."""

    name = "relay.multiply"
    traits = traits_def(Commutative())


@irdl_op_definition
class DivideOp(BroadcastOp):
    """`lhs / rhs`; integers round toward zero."""

    name = "relay.divide"


@irdl_op_definition
class PowerOp(BroadcastOp):
    """`lhs` to the power of `rhs`."""

    name = "relay.power"


@irdl_op_definition
class MaximumOp(BroadcastOp):
    """The larger of both; NaN when either is NaN."""

    name = "relay.maximum"
    traits = traits_def(Commutative())


@irdl_op_definition
class MinimumOp(BroadcastOp):
    """The smaller of both; NaN when either is NaN."""

    name = "relay.minimum"
    traits = traits_def(Commutative())


ModOp = define_op(
    BroadcastOp, "relay.mod", "The remainder with the sign of the dividend, as C `fmod`."
)
FloorModOp = define_op(
    BroadcastOp, "relay.floor_mod", "The remainder with the sign of the divisor."
)
NegativeOp = define_op(UnaryOp, "relay.negative", "`-data`.")
AbsOp = define_op(UnaryOp, "relay.abs", "The absolute value.")
SignOp = define_op(UnaryOp, "relay.sign", "-1, 0 or 1; NaN stays NaN.")
ExpOp = define_op(FloatUnaryOp, "relay.exp", "The exponential.")
LogOp = define_op(FloatUnaryOp, "relay.log", "The natural logarithm.")


@irdl_op_definition
class Log1pOp(FloatUnaryOp):
    """The natural logarithm of `1 + data`, also where `data` is small."""

    name = "relay.log1p"


SqrtOp = define_op(FloatUnaryOp, "relay.sqrt", "The square root.")
RsqrtOp = define_op(FloatUnaryOp, "relay.rsqrt", "One over the square root.")
TanhOp = define_op(FloatUnaryOp, "relay.tanh", "The hyperbolic tangent.")
SigmoidOp = define_op(FloatUnaryOp, "relay.sigmoid", "`1 / (1 + exp(-data))`.")
ErfOp = define_op(FloatUnaryOp, "relay.erf", "The error function.")
SinOp = define_op(FloatUnaryOp, "relay.sin", "The sine, in radians.")
CosOp = define_op(FloatUnaryOp, "relay.cos", "The cosine, in radians.")
TanOp = define_op(FloatUnaryOp, "relay.tan", "The tangent, in radians.")
AsinOp = define_op(FloatUnaryOp, "relay.asin", "The inverse sine.")
AcosOp = define_op(FloatUnaryOp, "relay.acos", "The inverse cosine.")
AtanOp = define_op(FloatUnaryOp, "relay.atan", "The inverse tangent.")
SinhOp = define_op(FloatUnaryOp, "relay.sinh", "The hyperbolic sine.")
CoshOp = define_op(FloatUnaryOp, "relay.cosh", "The hyperbolic cosine.")
AsinhOp = define_op(FloatUnaryOp, "relay.asinh", "The inverse hyperbolic sine.")
AcoshOp = define_op(FloatUnaryOp, "relay.acosh", "The inverse hyperbolic cosine.")
AtanhOp = define_op(FloatUnaryOp, "relay.atanh", "The inverse hyperbolic tangent.")
CeilOp = define_op(UnaryOp, "relay.ceil", "The next integer upward.")
FloorOp = define_op(UnaryOp, "relay.floor", "The next integer downward.")
RoundOp = define_op(UnaryOp, "relay.round", "The nearest integer, ties to even.")


@irdl_op_definition
class ClipOp(UnaryOp):
    """`min(max(data, a_min), a_max)`; NaN stays NaN."""

    name = "relay.clip"
    a_min = float_prop()
    a_max = float_prop()


@irdl_op_definition
class CastOp(DataOp):
    """Conversion to the element type `dtype`, as numpy's `astype`."""

    name = "relay.cast"
    dtype = prop_def(Attribute)

    def infer_types(self) -> Sequence[Attribute]:
        return (tensor_of(self.dtype, sizes_of(self.data)),)


@irdl_op_definition
class WhereOp(OneResultOp):
    """`x` where `condition` holds, else `y`, with numpy broadcasting over all three."""

    name = "relay.where"
    condition = operand_def(TensorType)
    x = operand_def(TensorType)
    y = operand_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        x, y = tensor_type(self.x), tensor_type(self.y)
        if tensor_type(self.condition).element_type != i1:
            raise VerifyException(
                f"{self.name}: the condition must be of i1, found {self.condition.type}"
            )
        if x.element_type != y.element_type:
            raise VerifyException(
                f"{self.name}: expected x and y of one element type, found {x} and {y}"
            )
        shape = broadcast_shapes(sizes_of(self.condition), type_sizes(x), type_sizes(y))
        return (tensor_of(x.element_type, shape),)
