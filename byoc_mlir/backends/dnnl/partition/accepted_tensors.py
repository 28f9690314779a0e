"""Types and shapes of tensors for which oneDNN has fast code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import bf16, f32
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.dialects.relay.base import DYNAMIC, tensor_type
from byoc_mlir.dialects.relay.qnn import BYTES
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.library import unavailable_reason

MAX_RANK = 6
"""Maximum rank for which oneDNN's element-wise and matmul primitives have fast code."""


def unsupported_types(op: Operation) -> str | None:
    """Returns why oneDNN does not support an operand or a result, or `None`."""
    reasons = map(_unsupported_type, (*op.operands, *op.results))
    return next((one for one in reasons if one is not None), None)


def unsupported_but_bytes(op: Operation) -> str | None:
    """Returns why oneDNN does not support an operand or a result, or `None`.

    In contrast to `unsupported_types`, all of them may be 8-bit.
    """
    values = (*op.operands, *op.results)
    if any(tensor_type(value).element_type not in BYTES for value in values):
        return unsupported_types(op)
    return next((one for one in map(unsupported_shape, values) if one is not None), None)


def _unsupported_type(value: SSAValue) -> str | None:
    type_ = tensor_type(value)
    if type_.element_type not in element_types():
        known = " and ".join(map(str, element_types()))
        return f"element type {type_.element_type} (oneDNN runs {known} here)"
    return unsupported_shape(value)


@cache
def element_types() -> Sequence[Attribute]:
    """Returns the float types for which oneDNN has fast code on this machine."""
    has_bf16 = unavailable_reason() is None and engine().has_bf16
    return (f32, bf16) if has_bf16 else (f32,)


def unsupported_shape(value: SSAValue) -> str | None:
    """Returns why oneDNN does not support a tensor of this shape, or `None`."""
    type_ = tensor_type(value)
    shape = type_.get_shape()
    if DYNAMIC in shape:
        return f"shape of {type_} is not known at compile time"
    if math.prod(shape) == 0:
        return f"{type_} has no elements"
    if len(shape) > MAX_RANK:
        return f"rank {len(shape)} (oneDNN's primitives go up to {MAX_RANK})"
    return None
