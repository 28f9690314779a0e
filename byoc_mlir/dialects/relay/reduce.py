"""Reductions over a list of axes, and softmax."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.operations import define_op
from byoc_mlir.dialects.relay.base import (
    AlongAxisOp,
    DataOp,
    bool_prop,
    int_prop,
    ints,
    ints_prop,
    normalize_axis,
    rank_of,
    sizes_of,
    tensor_of,
    tensor_type,
)
from byoc_mlir.dialects.relay.elementwise import FloatUnaryOp
from byoc_mlir.dims import Size


class ReduceOp(DataOp, ABC):
    """`data [...] -> output`, reduced over `axis` (without axes, nothing is reduced).

    Reduced dimensions stay as 1 with `keepdims`, otherwise they are removed.
    """

    axis = ints_prop()
    keepdims = bool_prop(False)

    @property
    def axes(self) -> tuple[int, ...]:
        """Returns the reduced axes, counted from the front, ascending."""
        rank = rank_of(self.data)
        axes = tuple(sorted(normalize_axis(axis, rank) for axis in ints(self.axis)))
        if len(set(axes)) != len(axes):
            raise VerifyException(f"{self.name}: axis {list(ints(self.axis))} repeats a dimension")
        return axes

    def reduced_sizes(self) -> tuple[Size, ...]:
        """Returns the sizes of the result."""
        axes, shape = self.axes, sizes_of(self.data)
        if self.keepdims.value.data:
            return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        return tuple(size for axis, size in enumerate(shape) if axis not in axes)

    def infer_types(self) -> Sequence[Attribute]:
        return (tensor_of(tensor_type(self.data).element_type, self.reduced_sizes()),)


class ArgReduceOp(ReduceOp, ABC):
    """`data [...] -> output` of `i64`: indices of the extreme values along the one axis."""

    select_last_index = bool_prop(False)

    def infer_types(self) -> Sequence[Attribute]:
        sizes = self.reduced_sizes()
        empty = [axis for axis in self.axes if sizes_of(self.data)[axis] == 0]
        if empty and 0 not in sizes:
            raise VerifyException(f"{self.name}: axis {empty[0]} has no elements to choose from")
        return (tensor_of(i64, sizes),)


@irdl_op_definition
class MeanOp(ReduceOp):
    """The arithmetic mean."""

    name = "relay.mean"


@irdl_op_definition
class MaxOp(ReduceOp):
    """The maximum; NaN when any element is."""

    name = "relay.max"


SumOp = define_op(ReduceOp, "relay.sum", "The sum.")
ProdOp = define_op(ReduceOp, "relay.prod", "The product.")
MinOp = define_op(ReduceOp, "relay.min", "The minimum; NaN when any element is.")
ArgmaxOp = define_op(
    ArgReduceOp,
    "relay.argmax",
    "The index of the maximum, the first one unless `select_last_index`.",
)
ArgminOp = define_op(
    ArgReduceOp,
    "relay.argmin",
    "The index of the minimum, the first one unless `select_last_index`.",
)


class SoftmaxLikeOp(AlongAxisOp, FloatUnaryOp, ABC):
    """`data [...] -> output [...]`, normalised along `axis`."""

    axis = int_prop(-1)

    def infer_types(self) -> Sequence[Attribute]:
        _ = self.positive_axis
        return super().infer_types()


@irdl_op_definition
class SoftmaxOp(SoftmaxLikeOp):
    """`exp(data - max) / sum(exp(data - max))` along `axis`."""

    name = "relay.nn.softmax"


@irdl_op_definition
class LogSoftmaxOp(SoftmaxLikeOp):
    """The logarithm of softmax along `axis`."""

    name = "relay.nn.log_softmax"
