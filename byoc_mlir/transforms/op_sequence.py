"""Several ops that take the place of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.relay import ConstantOp, RelayOp, bits, elementwise, transform
from byoc_mlir.dialects.relay.base import PyValue, shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype, relay_type
from byoc_mlir.transforms.rewriting import Array, constant_array


class OpSequence:
    """Ops in the order in which they are added, all at one location; no op changes nothing."""

    def __init__(self, location: LocationAttr):
        self.location = location
        self.ops: list[Operation] = []

    def add(self, kind: type[RelayOp], *operands: SSAValue, **properties: PyValue) -> SSAValue:
        """The result of an op of one result."""
        op = kind(*operands, **cast(Any, properties))
        self._append(op)
        return op.results[0]

    def constant(self, name: str, content: Array) -> SSAValue:
        """A constant."""
        op = ConstantOp.of(name, content)
        self._append(op)
        return op.output

    def _append(self, op: Operation) -> None:
        op.location = self.location
        self.ops.append(op)

    def cast(self, value: SSAValue, dtype: DTypeLike) -> SSAValue:
        """The elements as another type."""
        target = relay_type(np.dtype(dtype))
        if tensor_type(value).element_type == target:
            return value
        return self.add(elementwise.CastOp, value, dtype=target)

    def reinterpret(self, value: SSAValue, dtype: DTypeLike) -> SSAValue:
        """The bits of the elements as another type."""
        target = relay_type(np.dtype(dtype))
        if tensor_type(value).element_type == target:
            return value
        return self.add(bits.ReinterpretOp, value, dtype=target)

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The elements in another shape."""
        if shape_of(value) == tuple(shape):
            return value
        return self.add(transform.ReshapeOp, value, newshape=shape)

    def along(self, value: SSAValue, axis: int, rank: int) -> SSAValue:
        """A vector shaped to broadcast along `axis`; one number as it is."""
        shape = shape_of(value)
        if not shape:
            return value
        return self.reshape(value, [shape[0] if i == axis else 1 for i in range(rank)])

    def shifted(
        self, kind: type[elementwise.BroadcastOp], value: SSAValue, by: SSAValue
    ) -> SSAValue:
        """A sum or difference with a value of any type; nothing, where that is 0."""
        array = constant_array(by)
        if array is not None and not array.astype(np.float32).any():
            return value
        dtype = numpy_dtype(tensor_type(value).element_type)
        return self.add(kind, value, self.cast(by, dtype))
