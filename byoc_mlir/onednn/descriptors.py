"""How memory lies, and what a primitive does beside its operation."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import numpy as np

from byoc_mlir.onednn.constants import USER_SCRATCHPAD, DataType
from byoc_mlir.onednn.engine import Argument, OwnedHandle, engine
from byoc_mlir.tensors import Array, aligned_empty

_ANY = 1
"""`dnnl_format_tag_any`: the primitive chooses."""


class Descriptor(OwnedHandle):
    """A `dnnl_memory_desc_t`: sizes, element type, and the order of elements in memory."""

    def __init__(self, handle: ctypes.c_void_p, *, is_part: bool = False):
        """
        Args:
            is_part: it belongs to another object, and is there as long as that one.
        """
        self.handle = handle
        if not is_part:
            self._own("memory_desc", handle)

    @classmethod
    def dense(cls, dims: tuple[int, ...], data_type: DataType = DataType.F32) -> Descriptor:
        """Returns the row-major descriptor."""
        return cls.with_strides(dims, _dense_strides(dims), data_type)

    @classmethod
    def channels_last(cls, dims: tuple[int, ...]) -> Descriptor:
        """Returns the descriptor of an `f32` array that has its channels last; the library counts
        them as second.
        """
        batch, *spatial, channels = dims
        first, *between, last = _dense_strides(dims)
        return cls.with_strides((batch, channels, *spatial), (first, last, *between))

    @classmethod
    def of_any_layout(cls, dims: tuple[int, ...]) -> Descriptor:
        """Returns a descriptor of `f32` whose layout a primitive chooses."""
        return cls.with_tag(dims, _ANY)

    @classmethod
    def with_strides(
        cls, dims: tuple[int, ...], strides: tuple[int, ...], data_type: DataType = DataType.F32
    ) -> Descriptor:
        """Returns the descriptor with so many elements between neighbours along each dimension."""
        function = "dnnl_memory_desc_create_with_strides"
        return cls(engine().create(function, len(dims), dims, data_type, strides))

    @classmethod
    def with_tag(
        cls, dims: tuple[int, ...], tag: int, data_type: DataType = DataType.F32
    ) -> Descriptor:
        """Returns the descriptor with a layout that the library has a number for."""
        function = "dnnl_memory_desc_create_with_tag"
        return cls(engine().create(function, len(dims), dims, data_type, tag))

    @property
    def byte_size(self) -> int:
        """The bytes of memory that it describes."""
        return int(engine().size_of(self.handle))

    def copy(self) -> Descriptor:
        """Returns a copy that is on its own."""
        return Descriptor(engine().create("dnnl_memory_desc_clone", self))

    def is_same(self, other: Descriptor) -> bool:
        """True if memory of one is memory of the other."""
        return bool(engine().library.dnnl_memory_desc_equal(self.handle, other.handle))

    def memory(self) -> Array:
        """Returns new memory for what is described."""
        return aligned_empty((self.byte_size,), np.uint8)


class PrimitiveAttributes(OwnedHandle):
    """A `dnnl_primitive_attr_t`, whose scratchpad is always provided by the caller."""

    def __init__(
        self,
        post_ops: Sequence[tuple[str, tuple[Argument, ...]]] = (),
        *,
        scales: Sequence[tuple[int, int]] = (),
        zero_points: Sequence[tuple[int, int]] = (),
    ):
        """
        Args:
            post_ops: calls that append to a chain: `("dnnl_post_ops_append_eltwise", (…))`.
            scales, zero_points: arguments that have some, each with a mask: a set bit stands for a
                dimension along which there is one for each index.
        """
        call = engine().call
        self._own("primitive_attr", engine().create("dnnl_primitive_attr_create"))
        call("dnnl_primitive_attr_set_scratchpad_mode", self, USER_SCRATCHPAD)
        for argument, mask in scales:
            call("dnnl_primitive_attr_set_scales_mask", self, argument, mask)
        for argument, mask in zero_points:
            call("dnnl_primitive_attr_set_zero_points_mask", self, argument, mask)
        if post_ops:
            call("dnnl_primitive_attr_set_post_ops", self, _Chain(post_ops))


class _Chain(OwnedHandle):
    """A `dnnl_post_ops_t`."""

    def __init__(self, post_ops: Sequence[tuple[str, tuple[Argument, ...]]]):
        self._own("post_ops", engine().create("dnnl_post_ops_create"))
        for function, arguments in post_ops:
            engine().call(function, self, *arguments)


def _dense_strides(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the elements between neighbours along each dimension of a contiguous array."""
    return tuple(math.prod(dims[axis + 1 :]) for axis in range(len(dims)))
