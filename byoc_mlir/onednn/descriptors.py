"""Memory descriptors, and attributes of primitives: post-ops, scales, zero points."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence

import numpy as np

from byoc_mlir.onednn.constants import USER_SCRATCHPAD, DataType
from byoc_mlir.onednn.engine import Argument, OwnedHandle, engine
from byoc_mlir.tensors import Array, aligned_empty

_ANY = 1
"""Value of `dnnl_format_tag_any`: the primitive chooses the layout."""


class Descriptor(OwnedHandle):
    """Memory descriptor, `dnnl_memory_desc_t`: sizes, element type and memory layout."""

    def __init__(self, handle: ctypes.c_void_p, *, is_part: bool = False):
        """Wraps a `dnnl_memory_desc_t`.

        Args:
            is_part: True if another object owns it, and lives as long.
        """
        self.handle = handle
        if not is_part:
            self._own("memory_desc", handle)

    @classmethod
    def dense(cls, dims: tuple[int, ...], data_type: DataType = DataType.F32) -> Descriptor:
        """Returns a row-major descriptor."""
        return cls.with_strides(dims, _dense_strides(dims), data_type)

    @classmethod
    def channels_last(cls, dims: tuple[int, ...]) -> Descriptor:
        """Returns the descriptor of an `f32` array in NHWC; the library's dimensions are NCHW."""
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
        """Returns the descriptor with these strides, in elements."""
        function = "dnnl_memory_desc_create_with_strides"
        return cls(engine().create(function, len(dims), dims, data_type, strides))

    @classmethod
    def with_tag(
        cls, dims: tuple[int, ...], tag: int, data_type: DataType = DataType.F32
    ) -> Descriptor:
        """Returns the descriptor with one of the library's format tags."""
        function = "dnnl_memory_desc_create_with_tag"
        return cls(engine().create(function, len(dims), dims, data_type, tag))

    @property
    def byte_size(self) -> int:
        """Returns the size of the described memory in bytes."""
        return int(engine().size_of(self.handle))

    def copy(self) -> Descriptor:
        """Returns an independent copy."""
        return Descriptor(engine().create("dnnl_memory_desc_clone", self))

    def is_same(self, other: Descriptor) -> bool:
        """True if both describe the same memory layout."""
        return bool(engine().library.dnnl_memory_desc_equal(self.handle, other.handle))

    def memory(self) -> Array:
        """Returns new memory of the described size."""
        return aligned_empty((self.byte_size,), np.uint8)


class PrimitiveAttributes(OwnedHandle):
    """Attributes of a primitive, `dnnl_primitive_attr_t`; the caller provides the scratchpad."""

    def __init__(
        self,
        post_ops: Sequence[tuple[str, tuple[Argument, ...]]] = (),
        *,
        scales: Sequence[tuple[int, int]] = (),
        zero_points: Sequence[tuple[int, int]] = (),
    ):
        """Creates the attributes.

        Args:
            post_ops: calls that append to a chain: `("dnnl_post_ops_append_eltwise", (…))`.
            scales, zero_points: arguments that have some, each with a mask: a set bit stands for a
                dimension with one value for each index.
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
    """Chain of post-ops, `dnnl_post_ops_t`."""

    def __init__(self, post_ops: Sequence[tuple[str, tuple[Argument, ...]]]):
        self._own("post_ops", engine().create("dnnl_post_ops_create"))
        for function, arguments in post_ops:
            engine().call(function, self, *arguments)


def _dense_strides(dims: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of a contiguous array, in elements."""
    return tuple(math.prod(dims[axis + 1 :]) for axis in range(len(dims)))
