"""Inputs and outputs that keep their memory from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from onnx import helper

from byoc_mlir.devices import device_names, get_device
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.inference_session.absent import Partial
from byoc_mlir.inference_session.model_info import type_name
from byoc_mlir.runtime.device_array import DeviceArray, is_on_device
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.system.memory import array_at

if TYPE_CHECKING:
    from byoc_mlir.inference_session.session import InferenceSession


class OrtValue(Partial):
    """Array in the form in which ONNX Runtime's users hold it."""

    def __init__(self, array: Array | DeviceArray):
        self._array = array

    @classmethod
    def ortvalue_from_numpy(
        cls, array: Array, device_type: str = "cpu", device_id: int = 0
    ) -> Self:
        """Returns an array as a value; the array is not copied."""
        _check_host(device_type)
        return cls(array)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, array: Array, onnx_element_type: int) -> Self:
        """Returns an array's bytes as a value whose elements have a type of ONNX."""
        return cls(array.view(helper.tensor_dtype_to_np_dtype(onnx_element_type)))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> Self:
        """Returns a value of this shape and NumPy type, with uninitialised elements."""
        _check_host(device_type)
        return cls(np.empty(tuple(shape), element_type))

    @classmethod
    def from_dlpack(cls, value: Any) -> Self:
        """Returns a tensor of another library as a value in the same memory; the tensor is not
        copied.

        Raises:
            InvalidInputError: it gives no DLPack capsule of dense memory.
        """
        try:
            return cls(
                DeviceArray.imported(value) if is_on_device(value) else np.from_dlpack(value)
            )
        except Exception as error:  # the other library makes the capsule
            raise InvalidInputError(
                f"the {type(value).__name__} gives no DLPack capsule: {error}"
            ) from error

    def __dlpack__(self, **options: Any) -> Any:
        """Returns the DLPack capsule, by which other libraries take the value without a copy."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the DLPack device: type and number."""
        return self._array.__dlpack_device__()

    def numpy(self) -> Array:
        """Returns the array, or a copy of it if it is in the memory of a device."""
        return self._array.numpy() if isinstance(self._array, DeviceArray) else self._array

    @property
    def array(self) -> Array | DeviceArray:
        """Returns the array, wherever it is."""
        return self._array

    def update_inplace(self, array: Array) -> None:
        """Copies the elements of an array of the same type and shape into the value.

        Raises:
            InvalidInputError: the array has another type or shape.
        """
        mine = self._array
        if isinstance(mine, DeviceArray):
            raise InvalidInputError(f"the value is in the memory of {mine.device or 'a device'}")
        if array.dtype != mine.dtype or array.shape != mine.shape:
            raise InvalidInputError(
                f"the value is {mine.dtype}{list(mine.shape)},"
                f" found {array.dtype}{list(array.shape)}"
            )
        np.copyto(mine, array)

    def shape(self) -> list[int]:
        """Returns the sizes."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """Returns the type in ONNX's notation, such as `tensor(float)`."""
        return type_name(self._array.dtype)

    def element_type(self) -> int:
        """Returns the type's number in ONNX."""
        return int(helper.np_dtype_to_tensor_dtype(self._array.dtype))

    def tensor_size_in_bytes(self) -> int:
        """Returns the size of the elements in bytes."""
        return self._array.nbytes

    def data_ptr(self) -> int:
        """Returns the address of the first element."""
        mine = self._array
        return mine.address if isinstance(mine, DeviceArray) else int(mine.ctypes.data)

    def device_name(self) -> str:
        """Returns `cpu`, or the name of the device."""
        return self._array.device if isinstance(self._array, DeviceArray) else _HOST

    def has_value(self) -> bool:
        """Returns `True`."""
        return True

    def is_tensor(self) -> bool:
        """Returns `True`."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Returns `False`."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Returns `False`."""
        return False


class IOBinding(Partial):
    """Binding of inputs and outputs to memory for coming runs, created by a session's `io_binding`.

    Args:
        session: the session that will run the model.
    """

    def __init__(self, session: InferenceSession):
        self._known = tuple(session.executable.outputs)
        self.inputs: dict[str, Array | DeviceArray] = {}
        self.destinations: dict[str, Array | DeviceArray | None] = {}
        """Destination of each bound output; `None` for a new array."""
        self.results: dict[str, Array | DeviceArray] = {}
        """Outputs of the last run."""
        self.devices: dict[str, str] = {}
        """Device of each input and output that is bound to the memory of one."""

    def bind_cpu_input(self, name: str, array: Array) -> None:
        """Binds an input to an array, which is read at each run."""
        self.inputs[name] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Binds an input to a value, which is read at each run."""
        self._set_device(name, value.device_name())
        self.inputs[name] = value.array

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Binds an input to the caller's memory at an address, which is read at each run."""
        self._set_device(name, device_type)
        self.inputs[name] = _array(device_type, buffer_ptr, element_type, shape)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Binds an output to the caller's memory at this address, or to a new array."""
        array = None
        if buffer_ptr is not None:
            if element_type is None or shape is None:
                raise InvalidInputError(
                    f"output '{name}' is bound to an address; give element_type and shape, too"
                )
            array = _array(device_type, buffer_ptr, element_type, shape)
        self._bind_output(name, array, device_type)

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Binds an output to the memory of this value."""
        self._bind_output(name, value.array, value.device_name())

    def get_outputs(self) -> list[OrtValue]:
        """Returns the outputs of the last run, in the order in which they were bound."""
        found = (self.results[name] for name in self.destinations if name in self.results)
        return [OrtValue(array) for array in found]

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Returns the outputs of the last run as arrays of the host."""
        return [value.numpy() for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        """Clears the bound inputs."""
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Clears the bound outputs."""
        self.destinations.clear()
        self.results.clear()

    def synchronize_inputs(self) -> None:
        """Does nothing: calls return when their work is done."""

    def synchronize_outputs(self) -> None:
        """Does nothing: calls return when their work is done."""

    def _bind_output(self, name: str, array: Array | DeviceArray | None, device: str) -> None:
        if name not in self._known:
            raise InvalidInputError(
                f"there is no output '{name}'; the model's are {', '.join(self._known)}"
            )
        self._set_device(name, device)
        self.destinations[name] = array

    def _set_device(self, name: str, device: str) -> None:
        self.devices.pop(name, None)
        if not _is_host(device):
            _check_known(device)
            self.devices[name] = device


_HOST = "cpu"


def _is_host(device: str) -> bool:
    return device.lower() == _HOST


def _check_host(device: str) -> None:
    """Refuses a device for an array of the host.

    Raises:
        InvalidInputError: it is not the processor.
    """
    if not _is_host(device):
        raise InvalidInputError(
            f"device_type is {device!r}, accepted is 'cpu'; `InferenceSession.executable.to_device`"
            " copies arrays to a device, and `from_dlpack` takes those of another library"
        )


def _check_known(device: str) -> None:
    """Refuses a device of which no one knows.

    Raises:
        InvalidInputError: there is no such device.
    """
    known = device_names()
    if device not in known:
        raise InvalidInputError(
            f"device_type is {device!r}, accepted are {', '.join(map(repr, (_HOST, *known)))}"
        )


def _array(
    device: str, address: int, element_type: Any, shape: Sequence[int]
) -> Array | DeviceArray:
    """Returns the array at an address."""
    dtype, sizes = np.dtype(element_type), tuple(shape)
    if _is_host(device):
        return array_at(address, dtype, sizes)
    _check_known(device)
    return DeviceArray(None, (get_device(device).dlpack_type, 0), address, sizes, dtype, None)
