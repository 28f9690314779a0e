"""Building `dnnl` ops: where they go, which values they read, which nodes they stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from byoc_mlir.backends.dnnl.dialect import PermuteOp, ReorderOp, SliceOp, ViewOp
from byoc_mlir.backends.dnnl.dialect.base import like
from byoc_mlir.backends.dnnl.partition.activations import Reader
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of, tensor_type


class Builder:
    """Appends ops to a block. `reader` and `value` speak of the `relay` ops being converted."""

    def __init__(self, block: Block):
        self.block = block
        self.location: LocationAttr | None = None
        self.written: Attribute | None = None
        """The element type of what the ops being converted write."""
        self._parameters: dict[SSAValue, SSAValue] = {}
        self._converted: dict[SSAValue, SSAValue] = {}
        self.reader = Reader(self.resolve)

    def bind(self, parameter: SSAValue, value: SSAValue) -> None:
        """Lets a composite's parameter stand for the value that is passed."""
        self._parameters[parameter] = value

    def resolve(self, value: SSAValue) -> SSAValue:
        """The `relay` value that a composite's parameter stands for, or the value itself."""
        while value in self._parameters:
            value = self._parameters[value]
        return value

    def convert(self, old: SSAValue, new: SSAValue) -> None:
        """Records what became of a `relay` value."""
        self._converted[old] = new

    def value(self, old: SSAValue) -> SSAValue:
        """What became of a `relay` value."""
        return self._converted[self.resolve(old)]

    def add(self, op: Operation) -> SSAValue:
        """Appends an op and returns its first result."""
        if self.location is not None:
            op.location = self.location
        self.block.add_op(op)
        return op.results[0]

    def element(self, source: SSAValue) -> Attribute | None:
        """The element type of a product's result, where it is not that of its source."""
        return None if tensor_type(source).element_type == self.written else self.written

    def view(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same memory under another shape."""
        if shape_of(value) == tuple(shape):
            return value
        return self.add(ViewOp(self.row_major(value), result_types=[like(value, shape)]))

    def slice(self, value: SSAValue, begin: Sequence[int], sizes: Sequence[int]) -> SSAValue:
        """The same memory from an element on, as far as `sizes` go."""
        if shape_of(value) == tuple(sizes):
            return value
        source = self.row_major(value)
        return self.add(SliceOp(source, begin=list(begin), result_types=[like(value, sizes)]))

    def row_major(self, value: SSAValue) -> SSAValue:
        """The same tensor in the row-major layout, which only permuted ones are not in."""
        plain = like(value, shape_of(value))
        return value if value.type == plain else self.add(ReorderOp(value, result_types=[plain]))

    def add_return(self, op: Operation) -> None:
        """Appends the terminator."""
        self.block.add_op(op)

    def root(self, value: SSAValue) -> SSAValue:
        """The value whose memory this one shows, through views."""
        while isinstance(value.owner, ViewOp | PermuteOp):
            value = value.owner.source
        return value

    def is_computed(self, value: SSAValue) -> bool:
        """Whether a primitive writes it, so that it can be written to any place."""
        return not isinstance(value.owner, Block | ConstantOp | SliceOp)

    def copy(self, value: SSAValue) -> SSAValue:
        """The same tensor in memory of its own."""
        return self.add(ReorderOp(value, result_types=[like(value, shape_of(value))]))

    def expanded(self, value: SSAValue, rank: int) -> SSAValue:
        """The tensor with dimensions of 1 in front, up to that rank."""
        shape = shape_of(value)
        return self.view(value, (*(1,) * (rank - len(shape)), *shape))

    def channels(self, value: SSAValue, rank: int, axis: int) -> SSAValue:
        """A vector `[C]` along one dimension of a tensor of that rank."""
        shape = [1] * rank
        shape[axis] = math.prod(shape_of(value))
        return self.view(value, shape)
