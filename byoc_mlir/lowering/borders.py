"""Tensors that are one value everywhere but where another tensor is put into them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from byoc_mlir.dialects.relay.base import tensor_type, type_sizes
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size
from byoc_mlir.lowering.linalg_to_loops.contraction import fill_value
from byoc_mlir.lowering.relay_to_linalg.builder import slice_offsets, slice_sizes, static_ints
from byoc_mlir.lowering.to_llvm.types import byte_width

_WORTH_STRIPS = 1 << 15
"""Bytes from which the strips of a border take less time than all of the tensor, though each strip
is a loop nest of its own."""


@dataclass(frozen=True)
class Strip:
    """Part of a tensor: `sizes` elements from `offsets` on."""

    offsets: tuple[Size, ...]
    sizes: tuple[Size, ...]


def is_background(op: Operation) -> bool:
    """Whether an op fills a tensor of which only the border stays: all that reads it puts other
    tensors, of no holes, into it.
    """
    if not isinstance(op, linalg.GenericOp) or fill_value(op) is None:
        return False
    uses = tuple(op.results[0].uses)
    readers = [use.operation for use in uses]
    type_ = tensor_type(op.results[0])
    bytes_ = hint(math.prod(type_sizes(type_))) * byte_width(type_.element_type)
    return bytes_ >= _WORTH_STRIPS and all(
        isinstance(one, tensor.InsertSliceOp)
        and one.dest is op.results[0]
        and set(static_ints(one.static_strides)) == {1}
        for one in readers
    )


def border(op: tensor.InsertSliceOp) -> Iterator[Strip]:
    """What is left of the destination: strips that do not overlap."""
    offsets, inner = slice_offsets(op), slice_sizes(op)
    outer = type_sizes(tensor_type(op.dest))
    for axis, (offset, size, whole) in enumerate(zip(offsets, inner, outer, strict=True)):
        for start, width in ((0, offset), (offset + size, whole - offset - size)):
            if width != 0:
                yield _strip(offsets, inner, outer, axis, start, width)


def _strip(
    offsets: Sequence[Size],
    inner: Sequence[Size],
    outer: Sequence[Size],
    axis: int,
    start: Size,
    width: Size,
) -> Strip:
    """As long as the part along the axes before, as long as all along those behind."""
    behind = len(outer) - axis - 1
    return Strip(
        (*offsets[:axis], start, *(0,) * behind), (*inner[:axis], width, *outer[axis + 1 :])
    )
