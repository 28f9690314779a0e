"""oneDNN's objects for the descriptions of `calls.py`, created once and cached."""

from __future__ import annotations

import ctypes
from functools import cache

from byoc_mlir.backends.dnnl.library.calls import (
    Argument,
    Attributes,
    Descriptors,
    MemoryDescriptor,
    PrimitiveCall,
    Size,
    Special,
)
from byoc_mlir.backends.dnnl.library.formats import descriptor_strides, format_tag
from byoc_mlir.errors import ExecutionError
from byoc_mlir.onednn import engine as binding
from byoc_mlir.onednn.descriptors import Descriptor, PrimitiveAttributes
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.primitives import PrimitiveDescriptor


def find(call: PrimitiveCall) -> PrimitiveDescriptor | None:
    """Returns oneDNN's primitive descriptor for a call, or `None` if oneDNN does not support it.

    The descriptor depends on the current number of threads.
    """
    return _found(call, engine().threads)


def forget() -> None:
    """Clears the cache of `find`."""
    _found.cache_clear()


@cache
def _found(call: PrimitiveCall, _threads: int) -> PrimitiveDescriptor | None:
    arguments = [_argument(argument) for argument in call.arguments]
    try:
        return PrimitiveDescriptor(call.function, *arguments)
    except ExecutionError:
        return None


@cache
def descriptor(description: MemoryDescriptor) -> Descriptor:
    """Returns the library's object for a memory descriptor."""
    tag = format_tag(description)
    dims, data_type = description.dims, description.data_type
    if tag is not None:
        return Descriptor.with_tag(dims, tag, data_type)
    return Descriptor.with_strides(dims, descriptor_strides(description), data_type)


@cache
def _attributes(description: Attributes) -> PrimitiveAttributes:
    calls = [one.call for one in description.post_ops]
    return PrimitiveAttributes(
        [(call.function, tuple(map(_argument, call.arguments))) for call in calls],
        scales=description.scales,
        zero_points=description.zero_points,
    )


def _argument(argument: Argument) -> binding.Argument:
    if isinstance(argument, Special):
        return engine() if argument is Special.ENGINE else None
    if isinstance(argument, MemoryDescriptor):
        return descriptor(argument)
    if isinstance(argument, Attributes):
        return _attributes(argument)
    if isinstance(argument, Descriptors):
        return [descriptor(one) for one in argument.items]
    if isinstance(argument, Size):
        return ctypes.c_int64(argument.value)
    return argument
