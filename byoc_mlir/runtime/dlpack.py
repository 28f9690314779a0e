"""DLPack capsules of arrays on devices, by ctypes: NumPy takes those of the host only.

The structures are those of DLPack 0.8, https://dmlc.github.io/dlpack/latest/c_api.html.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from byoc_mlir.errors import InvalidInputError

HOST = (1, 3)
"""DLPack devices whose memory the host may read: the processor, and pinned memory of CUDA."""

_KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}
"""Numbers of the kinds of types, by NumPy's letter."""
_BFLOAT = 4


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_Delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("delete", _Delete)]

_NAME, _USED = b"dltensor", b"used_dltensor"

_python = ctypes.pythonapi
_new = _python.PyCapsule_New
_new.argtypes, _new.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object
_pointer = _python.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
_rename = _python.PyCapsule_SetName
_rename.argtypes, _rename.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_is_valid = _python.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.c_void_p, ctypes.c_char_p), ctypes.c_int
_raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)


@dataclass(eq=False)
class Imported:
    """Array of another package; its memory is given back when this object is collected."""

    device: tuple[int, int]
    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    managed: int

    def __del__(self) -> None:
        found = _Managed.from_address(self.managed)
        if found.delete:
            found.delete(self.managed)


def imported(value: Any) -> Imported:
    """Takes over the memory of an array on a device.

    The other package finishes its work on the array first, as for the default stream of CUDA.

    Raises:
        InvalidInputError: the array is not dense and row-major, or NumPy has no such type.
    """
    is_cuda = value.__dlpack_device__()[0] == 2
    capsule = value.__dlpack__(stream=1) if is_cuda else value.__dlpack__()
    managed = cast(int, _pointer(capsule, _NAME))
    _rename(capsule, _USED)
    tensor = _Managed.from_address(managed).tensor
    shape = tuple(tensor.shape[axis] for axis in range(tensor.rank))
    found = Imported(
        (tensor.device_type, tensor.device_id),
        (tensor.data or 0) + tensor.offset,
        shape,
        _dtype(tensor.type),
        managed,
    )
    if tensor.strides and not _is_dense(shape, tensor.strides[: tensor.rank]):
        raise InvalidInputError(
            f"an array on a device must be contiguous, found strides"
            f" {list(tensor.strides[: tensor.rank])} for shape {list(shape)}"
        )
    return found


def _dtype(type_: _Type) -> np.dtype[Any]:
    if type_.code == _BFLOAT and type_.bits == 16:
        from ml_dtypes import bfloat16

        return np.dtype(bfloat16)
    for letter, code in _KINDS.items():
        if code == type_.code and type_.lanes == 1 and type_.bits % 8 == 0:
            return np.dtype(bool if letter == "b" else f"{letter}{type_.bits // 8}")
    raise InvalidInputError(f"an array on a device has DLPack type {type_.code}, {type_.bits} bits")


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


_exported: dict[int, tuple[object, ...]] = {}
"""Objects that an exported array needs until its consumer deletes it, by its address."""


@_Delete
def _forget(managed: int) -> None:
    _exported.pop(managed, None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _end_of_capsule(capsule: int) -> None:
    """Frees a capsule that no one has consumed."""
    if _is_valid(capsule, _NAME):
        _exported.pop(cast(int, _raw_pointer(capsule, _NAME)), None)


def exported(
    owner: object,
    device: tuple[int, int],
    address: int,
    shape: Sequence[int],
    dtype: np.dtype[Any],
) -> object:
    """Returns the capsule of an array; `owner` keeps the memory until the consumer is done."""
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    managed = _Managed()
    tensor = managed.tensor
    tensor.data, tensor.rank = address, len(shape)
    tensor.device_type, tensor.device_id = device
    code = _BFLOAT if dtype.name == "bfloat16" else _KINDS[dtype.kind]
    tensor.type = _Type(code, dtype.itemsize * 8, 1)
    tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    managed.delete = _forget
    place = ctypes.addressof(managed)
    _exported[place] = (owner, sizes, managed)
    return _new(place, _NAME, ctypes.cast(_end_of_capsule, ctypes.c_void_p))
