"""Arrays in the memory of a device, for inputs and outputs that stay there."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Self, cast

import numpy as np

from byoc_mlir.abi import DEVICE_FUNCTIONS
from byoc_mlir.errors import DeviceError, DeviceMemoryError, InvalidInputError
from byoc_mlir.runtime import dlpack
from byoc_mlir.runtime.program import Array, LoadedCode, ProgramDevice
from byoc_mlir.runtime.system.memory import array_at

_POINTER, _STATUS, _SIZE = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64

_TYPES: Mapping[str, tuple[Any, ...]] = {
    "message": (ctypes.c_char_p, _STATUS),
    "identity": (ctypes.c_char_p,),
    "open": (_STATUS, _POINTER),
    "close": (None, _POINTER),
    "allocate": (_STATUS, _SIZE, _POINTER),
    "free": (None, _POINTER),
    "copy_in": (_STATUS, _POINTER, _POINTER, _POINTER, _SIZE),
    "copy_out": (_STATUS, _POINTER, _POINTER, _POINTER, _SIZE),
    "wait": (_STATUS, _POINTER),
}
"""Result and parameters of each function of a device; see `byoc_mlir/devices/base.py`."""


class DeviceFunctions:
    """Functions of a device, as a loaded program calls them.

    Args:
        device: the device in the program.
        state: the program's state, with the functions' addresses.
        code: code that may define the functions, which is kept.
    """

    def __init__(self, device: ProgramDevice, state: Array, code: LoadedCode | None = None):
        self.device = device
        self._state = state
        self._code = code
        self._functions = {
            name: ctypes.CFUNCTYPE(*_TYPES[name])(int(state[device.function_slot(name)]))
            for name in DEVICE_FUNCTIONS
        }

    def identity(self) -> str:
        """Returns the text that identifies device, driver and firmware, or ""."""
        text = cast(bytes | None, self._functions["identity"]())
        return text.decode(errors="replace") if text else ""

    def message(self, status: int) -> str:
        """Returns the device's text for a status."""
        text = cast(bytes | None, self._functions["message"](status))
        words = text.decode(errors="replace") if text else "no text"
        return f"{words} (status {status})"

    def allocate(self, size: int) -> int:
        """Allocates memory; returns its address.

        Raises:
            DeviceError: there is not enough memory.
        """
        found = _POINTER()
        self._call(f"allocate {size:,} bytes", "allocate", size, ctypes.addressof(found))
        return found.value or 0

    def free(self, address: int) -> None:
        """Frees memory."""
        self._functions["free"](address)

    def copy_in(self, address: int, array: Array) -> None:
        """Copies a contiguous array to the device, and waits for the copy."""
        self._copy("copy_in", address, int(array.ctypes.data), array.nbytes)

    def copy_out(self, array: Array, address: int) -> None:
        """Copies from the device to a contiguous array, and waits for the copy."""
        self._copy("copy_out", int(array.ctypes.data), address, array.nbytes)

    def _copy(self, name: str, target: int, source: int, size: int) -> None:
        opened = _POINTER()
        self._call("open a queue", "open", ctypes.addressof(opened))
        try:
            self._call("copy", name, opened.value, target, source, size)
            self._call("copy", "wait", opened.value)
        finally:
            self._functions["close"](opened.value)

    def _call(self, what: str, name: str, *arguments: Any) -> None:
        status = self._functions[name](*arguments)
        if status:
            self.fail(what, status)

    def fail(self, what: str, status: int) -> NoReturn:
        """Raises the error for a status of one of the functions."""
        text = f"could not {what}: device '{self.device.name}': {self.message(status)}"
        slot = self.device.allocation_slot
        is_allocation = int(self._state[slot]) == status & 0xFFFFFFFF
        self._state[slot] = 0
        if is_allocation:
            raise DeviceMemoryError(text, self.device.name)
        raise DeviceError(text)


class DeviceArray:
    """Dense, row-major array in the memory of a device.

    An executable takes it for an input that is `resident` on that device, and returns it for such
    an output. Other packages read it by DLPack. The memory is freed with its last user.

    Args:
        functions: functions of the device; `None` for memory of another package.
        address: address of the first element on the device.
        owner: object that keeps the memory.
    """

    def __init__(
        self,
        functions: DeviceFunctions | None,
        kind: tuple[int, int],
        address: int,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        owner: object,
    ):
        self.shape, self.dtype = tuple(shape), dtype
        self.address = address
        self._functions, self._kind, self._owner = functions, kind, owner

    @classmethod
    def new(cls, functions: DeviceFunctions, shape: Sequence[int], dtype: np.dtype[Any]) -> Self:
        """Allocates an array, whose content is undefined."""
        size = math.prod(shape) * dtype.itemsize
        address = functions.allocate(max(size, 1))
        owner = _Memory()
        weakref.finalize(owner, functions.free, address).atexit = False
        kind = (functions.device.dlpack_type, 0)
        return cls(functions, kind, address, shape, dtype, owner)

    @classmethod
    def copied(cls, functions: DeviceFunctions, array: Array) -> Self:
        """Copies an array of the host to the device."""
        made = cls.new(functions, array.shape, array.dtype)
        functions.copy_in(made.address, np.ascontiguousarray(array))
        return made

    @classmethod
    def imported(cls, value: Any) -> Self:
        """Wraps the array of another package, which keeps the memory; nothing is copied.

        Raises:
            InvalidInputError: it is not dense and row-major, or its type is not known.
        """
        if isinstance(value, cls):
            return value
        found = dlpack.imported(value)
        return cls(None, found.device, found.address, found.shape, found.dtype, found)

    @property
    def nbytes(self) -> int:
        """Returns the bytes of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def device(self) -> str:
        """Returns the device's name; "" for memory of another package."""
        return "" if self._functions is None else self._functions.device.name

    def is_on(self, device: ProgramDevice) -> bool:
        """True if a program may use the memory on a device."""
        return self.device == device.name or (
            not self.device and self._kind[0] == device.dlpack_type
        )

    def numpy(self) -> Array:
        """Returns a copy in the host's memory.

        Raises:
            InvalidInputError: the memory is another package's, which can copy it.
        """
        if self._functions is None:
            raise InvalidInputError("the array is of another package; convert it with that package")
        array = np.empty(self.shape, self.dtype)
        self._functions.copy_out(array, self.address)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Returns a copy for NumPy."""
        if copy is False:
            raise ValueError("an array of a device can only be copied")
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the DLPack device: its type, and its number."""
        return self._kind

    def __dlpack__(self, **_: Any) -> object:
        """Returns a DLPack capsule of the array, which keeps the memory; all work on it is done."""
        return dlpack.exported(self, self._kind, self.address, self.shape, self.dtype)

    def __repr__(self) -> str:
        where = self.device or f"DLPack device {self._kind[0]}"
        return f"DeviceArray({self.dtype}{list(self.shape)} on {where})"

    def handle(self) -> DeviceAddress:
        """Returns an array at the device's address, which no one may read on the host."""
        made = array_at(self.address, self.dtype, self.shape).view(DeviceAddress)
        made.owner = self
        return made


class _Memory:
    """Owner of memory that the process has allocated on a device."""


class DeviceAddress(np.ndarray[Any, np.dtype[Any]]):
    """Address on a device, in the form in which programs take addresses.

    Its elements are not on the host.
    """

    owner: DeviceArray


def on_host(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the outputs of a run, with copies of the arrays that are on devices."""
    return {
        name: value.numpy() if isinstance(value, DeviceArray) else value
        for name, value in values.items()
    }


def is_on_device(value: Any) -> bool:
    """True if a value is an array in the memory of a device, not of the host."""
    if isinstance(value, DeviceArray):
        return True
    where: Callable[[], tuple[int, int]] | None = getattr(value, "__dlpack_device__", None)
    return where is not None and not isinstance(value, np.ndarray) and where()[0] not in dlpack.HOST
