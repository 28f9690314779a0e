"""Borders: the part of a constant-filled tensor around a tensor that is inserted into it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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
"""Minimum size in bytes of a tensor for which filling the border's strips, a loop nest for each, is
faster than filling the whole tensor."""


def is_background(op: Operation) -> bool:
    """True if an op fills a large tensor of which only the border is used.

    That is, every user inserts another tensor into it, with unit strides.
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


def border(op: tensor.InsertSliceOp) -> Iterator[tuple[Sequence[Size], Sequence[Size]]]:
    """Yields the part of the destination around the inserted slice: offsets and sizes of disjoint
    strips.

    A strip along an axis has the inner extent on earlier axes, the full extent on later ones.
    """
    offsets, inner = slice_offsets(op), slice_sizes(op)
    outer = type_sizes(tensor_type(op.dest))
    for axis, (offset, size, whole) in enumerate(zip(offsets, inner, outer, strict=True)):
        for start, width in ((0, offset), (offset + size, whole - offset - size)):
            if width != 0:
                behind = outer[axis + 1 :]
                first = (*offsets[:axis], start, *[0] * len(behind))
                yield first, (*inner[:axis], width, *behind)
