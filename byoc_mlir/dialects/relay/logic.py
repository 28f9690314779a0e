"""Element-wise comparisons, logic and bits: binary ops broadcast as numpy does."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Commutative

from byoc_mlir.dialects.operations import define_op
from byoc_mlir.dialects.relay.base import DataOp, sizes_of, tensor_of, type_sizes
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, UnaryOp

_COMMUTATIVE = {"traits": traits_def(Commutative())}


class BitsOp(BroadcastOp, ABC):
    """`lhs [...], rhs [...] -> output [...]` of their type, with numpy broadcasting."""


class CompareOp(BroadcastOp, ABC):
    """`lhs [...], rhs [...] -> output [...]` of `i1`, with numpy broadcasting."""

    def infer_types(self) -> Sequence[Attribute]:
        return (tensor_of(i1, type_sizes(self.broadcast_type())),)


LogicalAndOp = define_op(BitsOp, "relay.logical_and", "`lhs and rhs` on `i1`.", _COMMUTATIVE)
LogicalOrOp = define_op(BitsOp, "relay.logical_or", "`lhs or rhs` on `i1`.", _COMMUTATIVE)
LogicalXorOp = define_op(BitsOp, "relay.logical_xor", "`lhs xor rhs` on `i1`.", _COMMUTATIVE)
BitwiseAndOp = define_op(BitsOp, "relay.bitwise_and", "Bitwise and of integers.", _COMMUTATIVE)
BitwiseOrOp = define_op(BitsOp, "relay.bitwise_or", "Bitwise or of integers.", _COMMUTATIVE)
BitwiseXorOp = define_op(
    BitsOp, "relay.bitwise_xor", "Bitwise exclusive or of integers.", _COMMUTATIVE
)
LeftShiftOp = define_op(BitsOp, "relay.left_shift", "`lhs` shifted left by `rhs` bits.")
RightShiftOp = define_op(BitsOp, "relay.right_shift", "`lhs` shifted right by `rhs` bits.")
EqualOp = define_op(CompareOp, "relay.equal", "`lhs == rhs`.", _COMMUTATIVE)
NotEqualOp = define_op(CompareOp, "relay.not_equal", "`lhs != rhs`.", _COMMUTATIVE)
LessOp = define_op(CompareOp, "relay.less", "`lhs < rhs`.")
LessEqualOp = define_op(CompareOp, "relay.less_equal", "`lhs <= rhs`.")
GreaterOp = define_op(CompareOp, "relay.greater", "`lhs > rhs`.")
GreaterEqualOp = define_op(CompareOp, "relay.greater_equal", "`lhs >= rhs`.")


@irdl_op_definition
class LogicalNotOp(UnaryOp):
    """`not data` on `i1`."""

    name = "relay.logical_not"


@irdl_op_definition
class BitwiseNotOp(UnaryOp):
    """Bitwise complement of integers."""

    name = "relay.bitwise_not"


class PredicateOp(DataOp, ABC):
    """`data [...] -> output [...]` of `i1`."""

    def infer_types(self) -> Sequence[Attribute]:
        return (tensor_of(i1, sizes_of(self.data)),)


IsnanOp = define_op(PredicateOp, "relay.isnan", "True for elements that are NaN.")
IsinfOp = define_op(
    PredicateOp, "relay.isinf", "True for elements that are infinite, of either sign."
)
