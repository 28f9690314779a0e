"""Conversion of memory descriptors to oneDNN's format tags or to strides."""

from __future__ import annotations

import ctypes
from functools import cache

from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.library.calls import MemoryDescriptor
from byoc_mlir.errors import CompilationError
from byoc_mlir.onednn.library import load_library


@cache
def _tags() -> dict[str, int]:
    """Returns `dnnl_format_tag_t` by layout string, as numbered by the loaded library."""
    name = load_library().handle.dnnl_fmt_tag2str
    name.restype = ctypes.c_char_p
    tags: dict[str, int] = {}
    for number in range(1, 2000):
        text = bytes(name(number)).decode()
        if text.startswith("unknown"):
            break
        tags.setdefault(text, number)
    return tags


def format_tag(descriptor: MemoryDescriptor) -> int | None:
    """Returns oneDNN's tag for a blocked layout or `any`; `None` if strides describe the layout.

    Raises:
        CompilationError: the library does not know the layout.
    """
    if descriptor.strides is not None:
        return None
    if descriptor.layout != layouts.ANY and not layouts.blocks(descriptor.layout):
        return None
    if descriptor.layout not in _tags():
        raise CompilationError(f"this oneDNN has no memory format '{descriptor.layout}'")
    return _tags()[descriptor.layout]


def descriptor_strides(descriptor: MemoryDescriptor) -> tuple[int, ...]:
    """Returns the strides of a descriptor that is not blocked."""
    return descriptor.strides or layouts.strides(descriptor.dims, descriptor.layout)
