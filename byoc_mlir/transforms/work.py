"""Work of an op, estimated from types alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Operation, SSAValue

from byoc_mlir.abi import COMPUTED_IN
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay.base import Tensor, relay_name
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.shape import DYNAMIC, type_sizes
from byoc_mlir.dims import Size
from byoc_mlir.transforms.blocks import is_constant

_ShapeOf: TypeAlias = Callable[[SSAValue], Sequence[Size]]

_WEIGHTED = ("conv", "dense")
_RECURRENT = ("lstm", "gru")


def estimated_work(op: Operation) -> int:
    """Returns the arithmetic operations of an op or composite; unknown dimensions count as 1.

    A MAC of a convolution or matmul counts as two operations. Other ops count one operation for
    each element of their results.
    """
    if isinstance(op, CompositeOp):
        return sum(estimated_work(inner) for inner in op.ops())
    if is_constant(op):
        return 0
    return 2 * multiplications(op) or sum(math.prod(_shape(result)) for result in op.results)


def multiplications(op: Operation) -> int:
    """Returns the MACs of a convolution, matmul or recurrent layer; 0 for other ops.

    Unknown dimensions count as 1.
    """
    return cast(int, _products(op, _shape))


def dynamic_macs(op: Operation) -> Size:
    """Returns the MACs as `multiplications` does, in terms of symbolic dimensions."""
    return _products(op, tensor_sizes)


def tensor_sizes(value: SSAValue) -> tuple[Size, ...]:
    """Returns the sizes of a tensor, with symbols; empty for other values.

    An unnamed dynamic size counts as 1.
    """
    if not isinstance(value.type, TensorType):
        return ()
    return tuple(1 if size == DYNAMIC else size for size in type_sizes(cast(Tensor, value.type)))


def tensor_bytes(value: SSAValue) -> Size:
    """Returns the bytes of a tensor, in terms of symbolic dimensions; 0 for other values."""
    if not isinstance(value.type, TensorType):
        return 0
    return math.prod(tensor_sizes(value)) * numpy_dtype(value.type.element_type).itemsize


def _products(op: Operation, shape_of: _ShapeOf) -> Size:
    name = relay_name(op).rpartition(".")[2]
    if len(op.operands) > 1 and name.endswith("_transpose") and "conv" in name:
        return math.prod(shape_of(op.operands[0])) * _per_channel(shape_of(op.operands[1]))
    if name in _RECURRENT:
        return math.prod(shape_of(op.operands[0])) * shape_of(op.operands[1])[1]
    written = sum(math.prod(shape_of(result)) for result in op.results)
    if len(op.operands) > 1 and name.startswith(_WEIGHTED):
        return written * _per_channel(shape_of(op.operands[1]))
    if name.endswith("matmul"):
        return written * _inner(op, shape_of(op.operands[0]))
    return 0


def precision(op: Operation) -> str:
    """Returns the type that an op computes in; `int8` stands for `i8` and `ui8`.

    The attribute `COMPUTED_IN` declares the type. Without it, the first operand has the type; for a
    recurrent layer, the weight has it.
    """
    said = op.attributes.get(COMPUTED_IN)
    if isinstance(said, StringAttr):
        return said.data
    if not op.operands or not isinstance(op.operands[0].type, TensorType):
        return ""
    name = relay_name(op).rpartition(".")[2]
    telling = op.operands[1 if name in _RECURRENT else 0]
    element = str(cast(Tensor, telling.type).element_type)
    return "int8" if element in ("i8", "ui8") else element


def _per_channel(weight: Sequence[Size]) -> Size:
    return math.prod(weight[1:])


def _inner(op: Operation, shape: Sequence[Size]) -> Size:
    transposed = str(op.properties.get("transpose_a", "")).startswith("true")
    return shape[-2 if transposed else -1] if len(shape) > 1 else 1


def _shape(value: SSAValue) -> tuple[int, ...]:
    if not isinstance(value.type, TensorType):
        return ()
    return tuple(max(1, size) if size < 0 else size for size in value.type.get_shape())
