"""Descriptions of primitives: the call, the operands and their descriptors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import FloatAttr, bf16, f32, i8, i32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library import calls
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import ui8
from byoc_mlir.onednn import constants
from byoc_mlir.onednn.constants import FORWARD_INFERENCE, Arg, DataType

LayoutOf = Callable[[SSAValue], str]
"""Layout of a value, actual or hypothetical."""


@dataclass(frozen=True)
class Operand:
    """Argument of an execution: a value, with the descriptor that the primitive uses for it."""

    argument: int
    value: SSAValue
    descriptor: calls.MemoryDescriptor
    packed: bool = False
    """True if the primitive chooses the layout; the constant is packed into it once, at load
    time.
    """


@dataclass(frozen=True)
class DescribedPrimitive:
    """Primitive: the call that creates its descriptor, and its arguments, the destination last."""

    call: calls.PrimitiveCall
    operands: tuple[Operand, ...]

    @property
    def arguments(self) -> tuple[int, ...]:
        """Returns the indices of the execution arguments, without the scratchpad."""
        return tuple(operand.argument for operand in self.operands)

    @property
    def parameters(self) -> dict[int, calls.MemoryDescriptor]:
        """Returns the descriptors of the scales and zero points among the arguments."""
        return {
            operand.argument: operand.descriptor
            for operand in self.operands
            if constants.is_parameter(operand.argument)
        }


_DATA_TYPES: Mapping[Attribute, DataType] = {
    bf16: DataType.BF16,
    f32: DataType.F32,
    i32: DataType.S32,
    i8: DataType.S8,
    ui8: DataType.U8,
}


def data_type_of(value: SSAValue) -> DataType:
    """Returns oneDNN's data type for the element type of a tensor."""
    return _DATA_TYPES[tensor_type(value).element_type]


def plain_bytes(value: SSAValue) -> int:
    """Returns the bytes of a tensor in the row-major layout."""
    return math.prod(shape_of(value)) * calls.element_bytes(data_type_of(value))


class Types:
    """Memory descriptors of values, in the layouts of their types or in given layouts."""

    def __init__(self, layout: LayoutOf):
        self.layout = layout

    def of(self, value: SSAValue) -> calls.MemoryDescriptor:
        return calls.MemoryDescriptor(
            shape_of(value), self.layout(value), data_type=data_type_of(value)
        )

    def operand(self, argument: int, value: SSAValue) -> Operand:
        return Operand(argument, value, self.of(value))

    def post_ops(self, op: dnnl.PostOpsOp) -> tuple[calls.Attributes, list[Operand]]:
        post_ops: list[calls.PostOp] = []
        operands: list[Operand] = []
        values = iter(op.post_op_operands)
        for position, attribute in enumerate(op.post_ops):
            if isinstance(attribute, dnnl.EltwiseAttr):
                post_ops.append(_eltwise_post_op(attribute))
                continue
            value = next(values)
            if isinstance(attribute, dnnl.SumAttr):
                post_ops.append(calls.Sum(attribute.factor.value.data))
                continue
            algorithm = cast(Any, attribute).algorithm.data
            if algorithm == "prelu":
                post_ops.append(calls.Prelu(_kept_dims(shape_of(value))))
                operands.append(self.operand(constants.prelu_arg(position), value))
            else:
                post_ops.append(calls.Binary(constants.BINARY[algorithm], self.of(value)))
                operands.append(self.operand(constants.post_op_arg(position), value))
        return calls.Attributes(tuple(post_ops)), operands


def _kept_dims(shape: Sequence[int]) -> int:
    return sum(1 << axis for axis, size in enumerate(shape) if size != 1)


def _eltwise_post_op(attribute: dnnl.EltwiseAttr) -> calls.Eltwise:
    algorithm = constants.ELTWISE[attribute.algorithm.data]
    return calls.Eltwise(algorithm, attribute.alpha.value.data, attribute.beta.value.data)


def number(attribute: FloatAttr) -> float:
    return float(attribute.value.data)


def dilates(op: dnnl.WindowOp) -> tuple[int, ...]:
    return tuple(step - 1 for step in ints(op.dilation))


def forward(kind: str, *arguments: calls.Argument) -> calls.PrimitiveCall:
    """Returns the call that creates the descriptor of a primitive of a kind, for inference."""
    return calls.PrimitiveCall(
        f"dnnl_{kind}_forward_primitive_desc_create", (calls.ENGINE, FORWARD_INFERENCE, *arguments)
    )


def unary(
    call: calls.PrimitiveCall,
    types: Types,
    source: SSAValue,
    result: SSAValue,
    others: Sequence[Operand] = (),
) -> DescribedPrimitive:
    operands = (types.operand(Arg.SRC, source), *others, types.operand(Arg.DST, result))
    return DescribedPrimitive(call, operands)
