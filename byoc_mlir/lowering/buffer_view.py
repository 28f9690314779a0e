"""Views of parts of buffers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.dialects.device_ops import in_space, space_of
from byoc_mlir.dialects.dynamic_buffers import ViewOp, buffer_sizes, row_major, strided_buffer
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.dims import Size
from byoc_mlir.lowering.relay_to_linalg.builder import (
    Slice,
    slice_offsets,
    slice_sizes,
    static_ints,
)


@dataclass(frozen=True)
class BufferView:
    """Elements of a dense buffer: `root[offset + sum(index * stride)]`."""

    root: SSAValue
    offset: Size
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]

    @staticmethod
    def whole(root: SSAValue) -> BufferView:
        """Returns the view of all elements of a buffer."""
        assert isinstance(root.type, MemRefType)
        shape = buffer_sizes(root.type)
        return BufferView(root, 0, shape, row_major(shape))

    def slice(self, part: Slice) -> BufferView:
        """Returns the part of this view that a slice op selects by offsets, sizes and strides."""
        steps = zip(self.strides, static_ints(part.static_strides), strict=True)
        strides = tuple(a * b for a, b in steps)
        return replace(self.part(slice_offsets(part), slice_sizes(part)), strides=strides)

    def part(self, offsets: Sequence[Size], sizes: Sequence[Size]) -> BufferView:
        """Returns `sizes` elements of this view, from `offsets` on."""
        places = zip(offsets, self.strides, strict=True)
        offset = sum((place * stride for place, stride in places), self.offset)
        return replace(self, offset=offset, shape=tuple(sizes))

    def reshaped(self, shape: Sequence[Size]) -> BufferView:
        """Returns a dense view of the same elements in another shape."""
        return BufferView(self.root, self.offset, tuple(shape), row_major(shape))

    @property
    def is_whole(self) -> bool:
        """True if this view covers the buffer exactly as it was allocated."""
        assert isinstance(self.root.type, MemRefType)
        return self == BufferView.whole(self.root)


def element_of(value: SSAValue) -> Attribute:
    """Returns the element type of a buffer."""
    assert isinstance(value.type, MemRefType)
    return value.type.element_type


def reinterpreted(view: BufferView) -> Operation:
    """Returns an op whose result is the memref of a view."""
    root, offset, shape, strides = view.root, view.offset, view.shape, view.strides
    type_ = strided_buffer(element_of(root), shape, strides, offset)
    assert isinstance(root.type, MemRefType)
    type_ = in_space(type_, space_of(root.type))
    if is_symbolic((offset, *shape, *strides, *buffer_sizes(root.type))):
        return ViewOp(root, type_)
    offsets, sizes, steps = (
        tuple(map(operator.index, numbers)) for numbers in ([offset], shape, strides)
    )
    return memref.ReinterpretCastOp(root, [], [], [], offsets, sizes, steps, type_)
