"""How much work an op is, estimated from types alone."""

from __future__ import annotations

import math
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay.base import Tensor, relay_name
from byoc_mlir.transforms.blocks import is_constant

_WEIGHTED = ("conv", "dense", "lstm", "gru", "rnn")


def estimated_work(op: Operation) -> int:
    """Arithmetic operations of one op or composite; unknown dimensions count as 1.

    Convolutions and matrix products count two for each product, other ops one for each element
    they write.
    """
    if isinstance(op, CompositeOp):
        return sum(estimated_work(inner) for inner in op.ops())
    if is_constant(op):
        return 0
    return 2 * multiplications(op) or sum(_elements(result) for result in op.results)


def multiplications(op: Operation) -> int:
    """The products of one convolution or matrix product; 0 for other ops."""
    name = relay_name(op).rpartition(".")[2]
    if len(op.operands) > 1 and name.endswith("_transpose") and "conv" in name:
        return _elements(op.operands[0]) * _per_channel(op.operands[1])
    written = sum(_elements(result) for result in op.results)
    if len(op.operands) > 1 and name.startswith(_WEIGHTED):
        return written * _per_channel(op.operands[1])
    if name.endswith("matmul"):
        return written * _inner(op)
    return 0


def precision(op: Operation) -> str:
    """What an op computes with: the type of its first operand, `int8` for bytes of either sign."""
    if not op.operands or not isinstance(op.operands[0].type, TensorType):
        return ""
    element = str(cast(Tensor, op.operands[0].type).element_type)
    return "int8" if element in ("i8", "ui8") else element


def _per_channel(weight: SSAValue) -> int:
    shape = _shape(weight)
    return math.prod(shape[1:])


def _inner(op: Operation) -> int:
    shape = _shape(op.operands[0])
    transposed = str(op.properties.get("transpose_a", "")).startswith("true")
    return shape[-2 if transposed else -1] if len(shape) > 1 else 1


def _elements(value: SSAValue) -> int:
    return math.prod(_shape(value))


def _shape(value: SSAValue) -> tuple[int, ...]:
    if not isinstance(value.type, TensorType):
        return ()
    return tuple(max(1, size) if size < 0 else size for size in value.type.get_shape())
