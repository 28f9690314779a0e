"""Builder of `dnnl` ops: insertion point, converted values, and locations of the ONNX nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.dialect.base import like
from byoc_mlir.backends.dnnl.partition.activations import Reader
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of, tensor_type


class Builder:
    """Builder that appends ops to a block. `reader` reads the `relay` ops to convert; `value`
    returns converted values.
    """

    def __init__(self, block: Block):
        self.block = block
        self.location: LocationAttr | None = None
        self.written: Attribute | None = None
        """Element type that the ops being converted write."""
        self._parameters: dict[SSAValue, SSAValue] = {}
        self._converted: dict[SSAValue, SSAValue] = {}
        self.reader = Reader(self.resolve)

    def bind(self, parameter: SSAValue, value: SSAValue) -> None:
        """Binds a composite's parameter to the value that is passed."""
        self._parameters[parameter] = value

    def resolve(self, value: SSAValue) -> SSAValue:
        """Returns the `relay` value that a composite's parameter is bound to, or the value
        itself.
        """
        while value in self._parameters:
            value = self._parameters[value]
        return value

    def convert(self, old: SSAValue, new: SSAValue) -> None:
        """Records the converted form of a `relay` value."""
        self._converted[old] = new

    def value(self, old: SSAValue) -> SSAValue:
        """Returns the converted form of a `relay` value."""
        return self._converted[self.resolve(old)]

    def add(self, op: Operation) -> SSAValue:
        """Appends an op and returns its first result."""
        if self.location is not None:
            op.location = self.location
        self.block.add_op(op)
        return op.results[0]

    def element(self, source: SSAValue) -> Attribute | None:
        """Returns the element type of a matmul's or convolution's result if it differs from its
        source's.
        """
        return None if tensor_type(source).element_type == self.written else self.written

    def view(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Adds a view of the same memory with another shape."""
        if shape_of(value) == tuple(shape):
            return value
        return self.add(dnnl.ViewOp(self.row_major(value), result_types=[like(value, shape)]))

    def slice(self, value: SSAValue, begin: Sequence[int], sizes: Sequence[int]) -> SSAValue:
        """Adds a view of a part of the memory, from the element `begin` on, of shape `sizes`."""
        if shape_of(value) == tuple(sizes):
            return value
        source = self.row_major(value)
        return self.add(dnnl.SliceOp(source, begin=list(begin), result_types=[like(value, sizes)]))

    def row_major(self, value: SSAValue) -> SSAValue:
        """Returns the tensor in the row-major layout; adds a reorder if it is permuted."""
        plain = like(value, shape_of(value))
        return (
            value if value.type == plain else self.add(dnnl.ReorderOp(value, result_types=[plain]))
        )

    def root(self, value: SSAValue) -> SSAValue:
        """Returns the value that owns the memory of a view."""
        while isinstance(value.owner, dnnl.ViewOp | dnnl.PermuteOp):
            value = value.owner.source
        return value

    def is_computed(self, value: SSAValue) -> bool:
        """True if a primitive writes the value, so that it can be written to any memory."""
        return not isinstance(value.owner, Block | ConstantOp | dnnl.SliceOp)

    def copy(self, value: SSAValue) -> SSAValue:
        """Adds a copy of the tensor."""
        return self.add(dnnl.ReorderOp(value, result_types=[like(value, shape_of(value))]))

    def expanded(self, value: SSAValue, rank: int) -> SSAValue:
        """Adds a view with leading dimensions of 1, up to the given rank."""
        shape = shape_of(value)
        return self.view(value, (*(1,) * (rank - len(shape)), *shape))

    def channels(self, value: SSAValue, rank: int, axis: int) -> SSAValue:
        """Adds a view of a vector `[C]` as a tensor of the given rank with `C` at `axis`."""
        shape = [1] * rank
        shape[axis] = math.prod(shape_of(value))
        return self.view(value, shape)
