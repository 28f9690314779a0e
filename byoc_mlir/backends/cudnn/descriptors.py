"""Descriptors of cuDNN's graph interface, as Python objects.

A descriptor gets attributes, is finalised, and then answers queries. `OwnedDescriptors` holds
all that one plan needs, and destroys them in the end.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from byoc_mlir.backends.cudnn.constants import Attribute, DescriptorKind, Type
from byoc_mlir.backends.cudnn.library import Cudnn

_CTYPES: dict[Type, Any] = {
    Type.BOOLEAN: ctypes.c_bool,
    Type.INT64: ctypes.c_int64,
    Type.FLOAT: ctypes.c_float,
    Type.INT32: ctypes.c_int32,
    Type.DESCRIPTOR: ctypes.c_void_p,
}
"""Types of values; all others are enumerations."""


class BackendDescriptor:
    """A descriptor; the methods that set attributes return it."""

    def __init__(self, library: Cudnn, kind: DescriptorKind):
        self.kind = kind
        self.pointer = ctypes.c_void_p()
        self._library = library
        status = library.handle.cudnnBackendCreateDescriptor(kind, ctypes.byref(self.pointer))
        library.check(status, f"creates no descriptor {kind.name}")

    def integers(self, attribute: Attribute, *values: int) -> BackendDescriptor:
        """Sets integers."""
        return self.set(attribute, Type.INT64, *values)

    def descriptors(self, attribute: Attribute, *values: BackendDescriptor) -> BackendDescriptor:
        """Sets finalised descriptors."""
        return self.set(attribute, Type.DESCRIPTOR, *(one.pointer.value for one in values))

    def set(self, attribute: Attribute, type_: Type, *values: float | None) -> BackendDescriptor:
        """Sets the values of an attribute."""
        array = (_ctype(type_) * len(values))(*values)
        return self._set(attribute, type_, len(values), array)

    def text(self, attribute: Attribute, text: bytes) -> BackendDescriptor:
        """Sets text."""
        return self._set(attribute, Type.CHAR, len(text), ctypes.create_string_buffer(text))

    def _set(self, attribute: Attribute, type_: Type, count: int, array: Any) -> BackendDescriptor:
        function = self._library.handle.cudnnBackendSetAttribute
        status = function(self.pointer, attribute, type_, ctypes.c_int64(count), array)
        self._library.check(status, f"refuses {attribute.name} of {self.kind.name}")
        return self

    def finalize(self) -> BackendDescriptor:
        """Ends the setting of attributes; returns the descriptor, which others may now name."""
        status = self._library.handle.cudnnBackendFinalize(self.pointer)
        self._library.check(status, f"refuses {self.kind.name}")
        return self

    def found(self, attribute: Attribute, type_: Type, most: int = 1) -> Sequence[int]:
        """Returns the values of an attribute, at most `most`."""
        array = (_ctype(type_) * most)()
        return array[: self._get(attribute, type_, most, array)]

    def find(self, attribute: Attribute, into: Sequence[BackendDescriptor]) -> int:
        """Writes an attribute's descriptors into some of the same kind; returns their number."""
        array = (ctypes.c_void_p * len(into))(*(one.pointer for one in into))
        return self._get(attribute, Type.DESCRIPTOR, len(into), array)

    def count(self, attribute: Attribute, type_: Type) -> int:
        """Returns the number of values of an attribute."""
        return self._get(attribute, type_, 0, None)

    def found_text(self, attribute: Attribute) -> bytes:
        """Returns the text of an attribute."""
        size = self.count(attribute, Type.CHAR)
        buffer = ctypes.create_string_buffer(size + 1)
        self._get(attribute, Type.CHAR, size, buffer)
        return buffer.value

    def _get(self, attribute: Attribute, type_: Type, most: int, array: Any) -> int:
        count = ctypes.c_int64()
        function = self._library.handle.cudnnBackendGetAttribute
        arguments = (attribute, type_, ctypes.c_int64(most), ctypes.byref(count), array)
        self._library.check(
            function(self.pointer, *arguments), f"has no {attribute.name} of {self.kind.name}"
        )
        return count.value

    def destroy(self) -> None:
        """Destroys the descriptor."""
        self._library.handle.cudnnBackendDestroyDescriptor(self.pointer)


class OwnedDescriptors:
    """Descriptors that end together, in a `with` statement."""

    def __init__(self, library: Cudnn):
        self._library = library
        self._made: list[BackendDescriptor] = []

    def __enter__(self) -> OwnedDescriptors:
        return self

    def __exit__(self, *_: object) -> None:
        for one in reversed(self._made):
            one.destroy()

    def new(self, kind: DescriptorKind) -> BackendDescriptor:
        """Creates a descriptor."""
        self._made.append(BackendDescriptor(self._library, kind))
        return self._made[-1]


def _ctype(type_: Type) -> Any:
    return _CTYPES.get(type_, ctypes.c_int)
