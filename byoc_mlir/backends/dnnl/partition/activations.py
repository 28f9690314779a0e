"""Element-wise functions that oneDNN has as one algorithm, and the Relay expressions for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Operation, OpResult, SSAValue

from byoc_mlir.dialects.relay import RelayOp
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.dialects.relay.elementwise import (
    AbsOp,
    AddOp,
    ClipOp,
    DivideOp,
    ErfOp,
    ExpOp,
    Log1pOp,
    LogOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    NegativeOp,
    PowerOp,
    RoundOp,
    SigmoidOp,
    SqrtOp,
    SubtractOp,
    TanhOp,
    WhereOp,
)
from byoc_mlir.dialects.relay.logic import LessOp
from byoc_mlir.dialects.relay.nn import LeakyReluOp, PreluOp, ReluOp
from byoc_mlir.tensors import Array


@dataclass(frozen=True)
class Activation:
    """`algorithm` of oneDNN's eltwise primitive, applied to `data`."""

    algorithm: str
    data: SSAValue
    alpha: float = 0.0
    beta: float = 0.0


Resolve = Callable[[SSAValue], SSAValue]
"""Function that returns the operand for a composite's parameter, or the value itself."""

_UNARY: dict[type[Operation], str] = {
    SigmoidOp: "logistic",
    TanhOp: "tanh",
    AbsOp: "abs",
    ExpOp: "exp",
    LogOp: "log",
    SqrtOp: "sqrt",
    RoundOp: "round",
}


class Reader:
    """Matcher of expressions from a value upwards, which follows the parameters of composites to
    their operands.
    """

    def __init__(self, resolve: Resolve = lambda value: value):
        self.resolve = resolve

    def activation(self, value: SSAValue) -> Activation | None:
        """Returns the largest expression with result `value` that oneDNN has as one algorithm."""
        op = self.owner(value)
        if isinstance(op, RelayOp) and type(op) in _UNARY:
            return Activation(_UNARY[type(op)], self.resolve(op.operands[0]))
        if isinstance(op, LeakyReluOp):
            return Activation("relu", self.resolve(op.data), op.alpha.value.data)
        if isinstance(op, PreluOp):
            slope = self.number(op.rhs)
            return None if slope is None else Activation("relu", self.resolve(op.lhs), slope)
        if isinstance(op, NegativeOp):
            return Activation("linear", self.resolve(op.data), -1.0, 0.0)
        return self._composed(value)

    def _composed(self, value: SSAValue) -> Activation | None:
        readers = (
            self._gelu_erf,
            self._gelu_tanh,
            self._mish,
            self._swish,
            self._hard_sigmoid,
            self._hard_swish,
            self._bounded,
            self._elu,
            self._square,
            self._linear,
        )
        for read in readers:
            found = read(value)
            if found is not None:
                return found
        return None

    def owner(self, value: SSAValue) -> Operation | None:
        """Returns the op that computes a value, or `None` for a block argument."""
        value = self.resolve(value)
        return value.op if isinstance(value, OpResult) else None

    def number(self, value: SSAValue) -> float | None:
        """Returns the value of a constant with one element, or `None`."""
        constant = self.constant(value)
        if constant is None or math.prod(constant.type.get_shape()) != 1:
            return None
        return float(constant.array.reshape(-1)[0])

    def array(self, value: SSAValue) -> Array | None:
        """Returns the array of a constant, or `None` for another value."""
        constant = self.constant(value)
        return None if constant is None else constant.array

    def constant(self, value: SSAValue) -> ConstantOp | None:
        """Returns the constant that a value is, or `None` for another value."""
        op = self.owner(value)
        return op if isinstance(op, ConstantOp) else None

    def scaled(self, value: SSAValue) -> tuple[SSAValue, float] | None:
        """Returns `(x, factor)` if the value is `x` times or divided by a constant."""
        op = self.owner(value)
        if isinstance(op, MultiplyOp):
            return self._beside_number(op, value)
        if isinstance(op, DivideOp) and self._keeps_shape(op.lhs, value):
            number = self.number(op.rhs)
            if number:
                return self.resolve(op.lhs), 1.0 / number
        return None

    def shifted(self, value: SSAValue) -> tuple[SSAValue, float] | None:
        """Returns `(x, summand)` if the value is `x` plus or minus a constant."""
        op = self.owner(value)
        if isinstance(op, AddOp):
            return self._beside_number(op, value)
        if isinstance(op, SubtractOp) and self._keeps_shape(op.lhs, value):
            number = self.number(op.rhs)
            if number is not None:
                return self.resolve(op.lhs), -number
        return None

    def _beside_number(
        self, op: AddOp | MultiplyOp | MaximumOp | MinimumOp, value: SSAValue
    ) -> tuple[SSAValue, float] | None:
        """Returns the operand of the type of `value`, and the number that is the other operand."""
        for x, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            number = self.number(other)
            if number is not None and self._keeps_shape(x, value):
                return self.resolve(x), number
        return None

    def _keeps_shape(self, x: SSAValue, value: SSAValue) -> bool:
        return self.resolve(x).type == self.resolve(value).type

    def factors(self, value: SSAValue) -> tuple[list[SSAValue], float]:
        """Returns the tensors and the constant whose product is the value; nested multiplications
        are followed.
        """
        scaled = self.scaled(value)
        if scaled is not None:
            tensors, number = self.factors(scaled[0])
            return tensors, number * scaled[1]
        op = self.owner(value)
        if isinstance(op, MultiplyOp):
            one, first = self.factors(op.lhs)
            two, second = self.factors(op.rhs)
            return one + two, first * second
        return [self.resolve(value)], 1.0

    def _gelu_erf(self, value: SSAValue) -> Activation | None:
        """Matches `0.5 · x · (1 + erf(x / √2))`, with the factors in any order."""
        return self._gelu(value, "gelu_erf", self._erf_argument)

    def _gelu_tanh(self, value: SSAValue) -> Activation | None:
        """Matches `0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))`, with the factors in any
        order.
        """
        return self._gelu(value, "gelu_tanh", self._tanh_argument)

    def _gelu(
        self, value: SSAValue, algorithm: str, argument: Callable[[SSAValue], SSAValue | None]
    ) -> Activation | None:
        if not isinstance(self.owner(value), MultiplyOp):
            return None
        tensors, number = self.factors(value)
        if len(tensors) != 2 or not math.isclose(number, 0.5, rel_tol=1e-6):
            return None
        for x, other in (tensors, reversed(tensors)):
            shifted = self.shifted(other)
            if shifted and shifted[1] == 1.0 and argument(shifted[0]) is x:
                return Activation(algorithm, x)
        return None

    def _erf_argument(self, value: SSAValue) -> SSAValue | None:
        op = self.owner(value)
        scaled = self.scaled(op.data) if isinstance(op, ErfOp) else None
        if scaled and math.isclose(scaled[1], math.sqrt(0.5), rel_tol=1e-5):
            return scaled[0]
        return None

    def _tanh_argument(self, value: SSAValue) -> SSAValue | None:
        op = self.owner(value)
        scaled = self.scaled(op.data) if isinstance(op, TanhOp) else None
        if not scaled or not math.isclose(scaled[1], math.sqrt(2 / math.pi), rel_tol=1e-4):
            return None
        total = self.owner(scaled[0])
        if not isinstance(total, AddOp):
            return None
        for x, cubic in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
            tensors, number = self.factors(cubic)
            x = self.resolve(x)
            if math.isclose(number, 0.044715, rel_tol=1e-4) and self._is_cube(tensors, x):
                return x
        return None

    def _is_cube(self, tensors: list[SSAValue], x: SSAValue) -> bool:
        if len(tensors) == 1:
            op = self.owner(tensors[0])
            if isinstance(op, PowerOp) and self.number(op.rhs) == 3.0:
                return self.resolve(op.lhs) is x
        return tensors == [x, x, x]

    def _mish(self, value: SSAValue) -> Activation | None:
        """Matches `x · tanh(log(1 + exp(x)))`.

        The logarithm may be clipped where the exponential overflows, because the tangent is 1
        there.
        """

        def growth(log: Operation | None) -> Operation | None:
            if isinstance(log, Log1pOp):
                return self.owner(log.data)
            one_plus = self.shifted(log.data) if isinstance(log, LogOp) else None
            return self.owner(one_plus[0]) if one_plus and one_plus[1] == 1.0 else None

        def inside(tanh: Operation | None) -> SSAValue | None:
            log = self.owner(tanh.data) if isinstance(tanh, TanhOp) else None
            exp = growth(self.owner(log.lhs) if isinstance(log, MinimumOp) else log)
            return self.resolve(exp.data) if isinstance(exp, ExpOp) else None

        return self._times(value, lambda x, op: Activation("mish", x) if inside(op) is x else None)

    def _swish(self, value: SSAValue) -> Activation | None:
        """Matches `x · sigmoid(a · x)`."""

        def gate(x: SSAValue, op: Operation | None) -> Activation | None:
            if not isinstance(op, SigmoidOp):
                return None
            if self.resolve(op.data) is x:
                return Activation("swish", x, 1.0)
            scaled = self.scaled(op.data)
            return Activation("swish", x, scaled[1]) if scaled and scaled[0] is x else None

        return self._times(value, gate)

    def _hard_swish(self, value: SSAValue) -> Activation | None:
        """Matches `x · clip(a · x + b, 0, 1)`."""

        def gate(x: SSAValue, op: Operation | None) -> Activation | None:
            hard = self._hard_sigmoid(op.results[0]) if op and op.results else None
            if hard is None or hard.data is not x:
                return None
            return Activation("hardswish", x, hard.alpha, hard.beta)

        found = self._times(value, gate)
        return found or self._scaled_hard_swish(value)

    def _scaled_hard_swish(self, value: SSAValue) -> Activation | None:
        """Matches `x · clip(x + 3, 0, 6) / 6`, with the division last."""
        tensors, number = self.factors(value)
        if len(tensors) != 2:
            return None
        for x, other in (tensors, reversed(tensors)):
            inner, low, top = self.bounds(other)
            shifted = self.shifted(inner)
            if low != 0.0 or shifted is None or shifted[0] is not x:
                continue
            if math.isclose(number * top, 1.0, rel_tol=1e-6):
                return Activation("hardswish", x, number, shifted[1] * number)
        return None

    def _times(
        self,
        value: SSAValue,
        gate: Callable[[SSAValue, Operation | None], Activation | None],
    ) -> Activation | None:
        op = self.owner(value)
        if not isinstance(op, MultiplyOp):
            return None
        return gate(self.resolve(op.lhs), self.owner(op.rhs)) or gate(
            self.resolve(op.rhs), self.owner(op.lhs)
        )

    def _hard_sigmoid(self, value: SSAValue) -> Activation | None:
        """Matches `clip(a · x + b, 0, 1)`, also in the form `clip(x + 3, 0, 6) / 6`."""
        factor = 1.0
        scaled = self.scaled(value)
        if scaled is not None:
            value, factor = scaled
        clipped, low, high = self.bounds(value)
        if low != 0.0 or not math.isclose(high * factor, 1.0, rel_tol=1e-6):
            return None
        shifted = self.shifted(clipped)
        if shifted is None:
            return None
        x, beta = shifted
        inner = self.scaled(x)
        x, alpha = inner if inner is not None else (x, 1.0)
        return Activation("hardsigmoid", x, alpha * factor, beta * factor)

    def bounds(self, value: SSAValue) -> tuple[SSAValue, float, float]:
        """Returns `(x, low, high)` for a value that is `x` bounded by constants.

        The ops may be `clip`, `relu`, `maximum` and `minimum`. The bounds may be infinite.
        """
        value = self.resolve(value)
        own = self._own_bounds(value)
        if own is None:
            return value, -math.inf, math.inf
        inside, least, most = own
        x, low, high = self.bounds(inside)
        return x, min(max(low, least), most), min(max(high, least), most)

    def _own_bounds(self, value: SSAValue) -> tuple[SSAValue, float, float] | None:
        op = self.owner(value)
        if isinstance(op, ReluOp):
            return op.data, 0.0, math.inf
        if isinstance(op, ClipOp):
            low, high = op.a_min.value.data, op.a_max.value.data
            return (op.data, low, high) if low <= high else None
        if not isinstance(op, MaximumOp | MinimumOp):
            return None
        bounded = self._beside_number(op, value)
        if bounded is None:
            return None
        x, number = bounded
        return (x, number, math.inf) if isinstance(op, MaximumOp) else (x, -math.inf, number)

    def _bounded(self, value: SSAValue) -> Activation | None:
        """Matches `relu`, or `clip` between two finite values.

        oneDNN has no algorithm for other single bounds.
        """
        x, low, high = self.bounds(value)
        if (low, high) == (0.0, math.inf):
            return Activation("relu", x)
        if math.isinf(low) or math.isinf(high):
            return None
        return Activation("clip", x, low, high)

    def _elu(self, value: SSAValue) -> Activation | None:
        """Matches `where(x < 0, a · (exp(x) - 1), x)`."""
        op = self.owner(value)
        less = self.owner(op.condition) if isinstance(op, WhereOp) else None
        if not isinstance(op, WhereOp) or not isinstance(less, LessOp):
            return None
        x = self.resolve(op.y)
        tensors, alpha = self.factors(op.x)
        shifted = self.shifted(tensors[0]) if len(tensors) == 1 else None
        growth = self.owner(shifted[0]) if shifted and shifted[1] == -1.0 else None
        is_elu = (
            self.resolve(less.lhs) is x
            and self.number(less.rhs) == 0.0
            and isinstance(growth, ExpOp)
            and self.resolve(growth.data) is x
        )
        return Activation("elu", x, alpha) if is_elu else None

    def _square(self, value: SSAValue) -> Activation | None:
        op = self.owner(value)
        if isinstance(op, MultiplyOp) and self.resolve(op.lhs) is self.resolve(op.rhs):
            return Activation("square", self.resolve(op.lhs))
        if isinstance(op, PowerOp) and self._keeps_shape(op.lhs, value):
            number = self.number(op.rhs)
            if number == 2.0:
                return Activation("square", self.resolve(op.lhs))
        return None

    def _linear(self, value: SSAValue) -> Activation | None:
        """Matches `a · x + b`."""
        shifted = self.shifted(value)
        x, beta = shifted if shifted is not None else (self.resolve(value), 0.0)
        scaled = self.scaled(x)
        if shifted is None and scaled is None:
            return None
        x, alpha = scaled if scaled is not None else (x, 1.0)
        return Activation("linear", x, alpha, beta)
