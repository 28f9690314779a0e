"""Element-wise comparisons, logic and bits: binary ops broadcast as numpy does."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Commutative

from byoc_mlir.dialects.relay.base import DataOp, sizes_of, tensor_of, type_sizes
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, UnaryOp


class CompareOp(BroadcastOp, ABC):
    """`lhs [...], rhs [...] -> output [...]` of `i1`, with numpy broadcasting."""

    def infer_types(self) -> Sequence[Attribute]:
        return (tensor_of(i1, type_sizes(self.broadcast_type())),)


@irdl_op_definition
class LogicalAndOp(BroadcastOp):
    """`lhs and rhs` on `i1`."""

    name = "relay.logical_and"
    traits = traits_def(Commutative())


@irdl_op_definition
class LogicalOrOp(BroadcastOp):
    """`lhs or rhs` on `i1`."""

    name = "relay.logical_or"
    traits = traits_def(Commutative())


@irdl_op_definition
class LogicalXorOp(BroadcastOp):
    """`lhs xor rhs` on `i1`."""

    name = "relay.logical_xor"
    traits = traits_def(Commutative())


@irdl_op_definition
class BitwiseAndOp(BroadcastOp):
    """Bitwise and of integers."""

    name = "relay.bitwise_and"
    traits = traits_def(Commutative())


@irdl_op_definition
class BitwiseOrOp(BroadcastOp):
    """Bitwise or of integers."""

    name = "relay.bitwise_or"
    traits = traits_def(Commutative())


@irdl_op_definition
class BitwiseXorOp(BroadcastOp):
    """Bitwise exclusive or of integers."""

    name = "relay.bitwise_xor"
    traits = traits_def(Commutative())


@irdl_op_definition
class LeftShiftOp(BroadcastOp):
    """`lhs` shifted left by `rhs` bits."""

    name = "relay.left_shift"


@irdl_op_definition
class RightShiftOp(BroadcastOp):
    """`lhs` shifted right by `rhs` bits."""

    name = "relay.right_shift"


@irdl_op_definition
class EqualOp(CompareOp):
    """`lhs == rhs`."""

    name = "relay.equal"
    traits = traits_def(Commutative())


@irdl_op_definition
class NotEqualOp(CompareOp):
    """`lhs != rhs`."""

    name = "relay.not_equal"
    traits = traits_def(Commutative())


@irdl_op_definition
class LessOp(CompareOp):
    """`lhs < rhs`."""

    name = "relay.less"


@irdl_op_definition
class LessEqualOp(CompareOp):
    """`lhs <= rhs`."""

    name = "relay.less_equal"


@irdl_op_definition
class GreaterOp(CompareOp):
    """`lhs > rhs`."""

    name = "relay.greater"


@irdl_op_definition
class GreaterEqualOp(CompareOp):
    """`lhs >= rhs`."""

    name = "relay.greater_equal"


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


@irdl_op_definition
class IsnanOp(PredicateOp):
    """True for elements that are NaN."""

    name = "relay.isnan"


@irdl_op_definition
class IsinfOp(PredicateOp):
    """True for elements that are infinite, of either sign."""

    name = "relay.isinf"
