"""Several ops that take the place of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.relay import ConstantOp, RelayOp, bits, elementwise, transform
from byoc_mlir.dialects.relay.base import sizes_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype, relay_type
from byoc_mlir.dialects.relay.evaluate import can_be_folded, evaluate_op
from byoc_mlir.dialects.relay.properties import PyValue
from byoc_mlir.dims import Size
from byoc_mlir.tensors import Array
from byoc_mlir.transforms.rewriting import constant_array, constant_name


class OpSequence:
    """Ops in the order in which they are added, all at one location.

    No op is one that changes nothing; what is known is computed.
    """

    def __init__(self, location: LocationAttr):
        self.location = location
        self.ops: list[Operation] = []

    def add(
        self,
        kind: type[RelayOp],
        *operands: SSAValue | Sequence[SSAValue],
        **properties: PyValue,
    ) -> SSAValue:
        """The result of an op of one result, or the constant that it is."""
        (result,) = self.add_all(kind, *operands, **properties)
        return result

    def add_all(
        self,
        kind: type[RelayOp],
        *operands: SSAValue | Sequence[SSAValue],
        **properties: PyValue,
    ) -> Sequence[SSAValue]:
        """The results of an op, or the constants that they are."""
        op = kind(*operands, **cast(Any, properties))
        arrays = [constant_array(value) for value in op.operands]
        known = [array for array in arrays if array is not None]
        if len(known) == len(arrays) and can_be_folded(op, known):
            contents, name = evaluate_op(op, known), constant_name(op, "folded")
            op.drop_all_references()
            return [self.constant(name, content) for content in contents]
        self._append(op)
        return op.results

    def constant(self, name: str, content: Array) -> SSAValue:
        """A constant."""
        op = ConstantOp.of(name, content)
        self._append(op)
        return op.output

    def discard(self) -> None:
        """Forgets the ops; they use nothing any more."""
        for op in reversed(self.ops):
            op.drop_all_references()
        self.ops.clear()

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

    def reshape(self, value: SSAValue, shape: Sequence[Size]) -> SSAValue:
        """The elements in another shape."""
        if sizes_of(value) == tuple(shape):
            return value
        return self.add(transform.ReshapeOp, value, newshape=shape)

    def along(self, value: SSAValue, axis: int, rank: int) -> SSAValue:
        """A vector shaped to broadcast along `axis`; one number as it is."""
        shape = sizes_of(value)
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
