"""Tensors `[N, C, spatial...]` with their channels moved behind the pixels, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.base import Tensor, rank_of, sizes_of, tensor_of, tensor_type
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Read, dims

T = TypeVar("T")

_LAST, _FIRST = "channels_last", "channels_first"
"""What the ops are called that transpose."""


def channels_last(b: LinalgBuilder, value: SSAValue) -> SSAValue:
    """`[N, C, spatial...]` as `[N, spatial..., C]`."""
    rank = rank_of(value)
    read = Read(value, dims((0, rank - 1, *range(1, rank - 1))))
    return b.generic([read], last_type(value), lambda s, x: x, name=_LAST)


def channels_first(b: LinalgBuilder, value: SSAValue) -> SSAValue:
    """`[N, spatial..., C]` as `[N, C, spatial...]`."""
    batch, *sizes, channels = sizes_of(value)
    type_ = tensor_of(tensor_type(value).element_type, [batch, channels, *sizes])
    read = Read(value, with_last(dims(range(len(sizes) + 2))))
    return b.generic([read], type_, lambda s, x: x, name=_FIRST)


def last_type(value: SSAValue) -> Tensor:
    """The type of what `channels_last` makes of a value."""
    return tensor_of(tensor_type(value).element_type, with_last(sizes_of(value)))


def with_last(values: Iterable[T]) -> Sequence[T]:
    """What belongs to the axes `N, C, spatial...`, with the channels' at the end."""
    batch, channels, *spatial = values
    return (batch, *spatial, channels)


def before_channels_first(value: SSAValue) -> SSAValue | None:
    """What a result of `channels_first` was made of; `None` for another value."""
    return _operand(value, _FIRST)


def before_channels_last(value: SSAValue) -> SSAValue | None:
    """What a result of `channels_last` was made of; `None` for another value."""
    return _operand(value, _LAST)


def _operand(value: SSAValue, name: str) -> SSAValue | None:
    op = value.owner
    if not isinstance(op, linalg.GenericOp) or op.doc is None or op.doc.data != name:
        return None
    return op.operands[0]
