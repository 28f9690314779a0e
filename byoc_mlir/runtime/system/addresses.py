"""Addresses of the elements of arrays and of the code of functions."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from byoc_mlir.tensors import Array

_pointer_at: Callable[[int], Any] = ctypes.c_void_p.from_address

_DATA = object.__basicsize__
"""Offset of the pointer to the elements, the first field of an array object; see `PyArray_DATA` of
NumPy's C interface."""


def _from_object(array: Array) -> int:
    return _pointer_at(id(array) + _DATA).value


def _from_interface(array: Array) -> int:
    return int(array.ctypes.data)


def _has_known_layout() -> bool:
    if sys.implementation.name != "cpython":
        return False  # an id is an address there only
    probe = np.empty(1, np.uint8)
    return _pointer_at(id(probe) + _DATA).value == probe.ctypes.data


address_of = _from_object if _has_known_layout() else _from_interface
"""Function that returns an array's address, in a tenth of the time of `array.ctypes.data`."""


def function_address(function: Any) -> int:
    """Returns the address of a function that ctypes knows.

    `ctypes.cast` is not used: it leaves a reference cycle of its argument and its result.
    """
    return cast(int, ctypes.c_void_p.from_buffer(function).value)


_WRITABLE = 0x200
"""Value of `PyBUF_WRITE`."""

_memory_at = ctypes.pythonapi.PyMemoryView_FromMemory
_memory_at.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_memory_at.restype = ctypes.py_object


def array_at(address: int, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """Returns an array over memory that it does not own, at the given address."""
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    memory = cast(memoryview, _memory_at(address, size, _WRITABLE))
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(shape)


@lru_cache(256)
def c_array(element: Any, count: int) -> Any:
    """Returns the cached type of C arrays with `count` elements.

    Types are cached because each new one leaves a reference cycle.
    """
    return element * count
