"""Sequences of ops that replace one op."""

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
    """Ops that replace one op, in the order in which they are added, all with that op's location.

    Ops that would change nothing are omitted; ops of constants are folded.
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
        """Adds an op with one result; returns the result, or the constant that it folds to."""
        (result,) = self.add_all(kind, *operands, **properties)
        return result

    def add_all(
        self,
        kind: type[RelayOp],
        *operands: SSAValue | Sequence[SSAValue],
        **properties: PyValue,
    ) -> Sequence[SSAValue]:
        """Adds an op; returns its results, or the constants that they fold to."""
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
        """Adds a constant."""
        op = ConstantOp.of(name, content)
        self._append(op)
        return op.output

    def discard(self) -> None:
        """Discards the ops and their uses of operands."""
        for op in reversed(self.ops):
            op.drop_all_references()
        self.ops.clear()

    def _append(self, op: Operation) -> None:
        op.location = self.location
        self.ops.append(op)

    def cast(self, value: SSAValue, dtype: DTypeLike) -> SSAValue:
        """Casts the elements to another type."""
        target = relay_type(np.dtype(dtype))
        if tensor_type(value).element_type == target:
            return value
        return self.add(elementwise.CastOp, value, dtype=target)

    def reinterpret(self, value: SSAValue, dtype: DTypeLike) -> SSAValue:
        """Reinterprets the bits of the elements as another type."""
        target = relay_type(np.dtype(dtype))
        if tensor_type(value).element_type == target:
            return value
        return self.add(bits.ReinterpretOp, value, dtype=target)

    def reshape(self, value: SSAValue, shape: Sequence[Size]) -> SSAValue:
        """Reshapes a value."""
        if sizes_of(value) == tuple(shape):
            return value
        return self.add(transform.ReshapeOp, value, newshape=shape)

    def along(self, value: SSAValue, axis: int, rank: int) -> SSAValue:
        """Reshapes a vector to broadcast along `axis`; leaves a scalar as it is."""
        shape = sizes_of(value)
        if not shape:
            return value
        return self.reshape(value, [shape[0] if i == axis else 1 for i in range(rank)])

    def shifted(
        self, kind: type[elementwise.BroadcastOp], value: SSAValue, by: SSAValue
    ) -> SSAValue:
        """Adds or subtracts `by`, cast to the type of `value`; omits the op if `by` is 0."""
        array = constant_array(by)
        if array is not None and not array.astype(np.float32).any():
            return value
        dtype = numpy_dtype(tensor_type(value).element_type)
        return self.add(kind, value, self.cast(by, dtype))
