"""Inputs and outputs that keep their memory from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from onnx import helper

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.inference_session.absent import Partial
from byoc_mlir.inference_session.model_info import type_name
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.system.addresses import array_at

if TYPE_CHECKING:
    from byoc_mlir.inference_session.session import InferenceSession


class OrtValue(Partial):
    """Array in the form in which ONNX Runtime's users hold it."""

    def __init__(self, array: Array):
        self._array = array

    @classmethod
    def ortvalue_from_numpy(
        cls, array: Array, device_type: str = "cpu", device_id: int = 0
    ) -> Self:
        """Returns an array as a value; the array is not copied."""
        check_device(device_type)
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
        check_device(device_type)
        return cls(np.empty(tuple(shape), element_type))

    @classmethod
    def from_dlpack(cls, value: Any) -> Self:
        """Returns a tensor of another library as a value in the same memory; the tensor is not
        copied.

        Raises:
            InvalidInputError: it gives no DLPack capsule, or its memory is not the processor's.
        """
        try:
            return cls(np.from_dlpack(value))
        except Exception as error:  # the other library makes the capsule
            raise InvalidInputError(
                f"the {type(value).__name__} gives no DLPack capsule of the processor's memory:"
                f" {error}"
            ) from error

    def __dlpack__(self, **options: Any) -> Any:
        """Returns the DLPack capsule, by which other libraries take the value without a copy."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns the DLPack device, which is the processor."""
        return self._array.__dlpack_device__()

    def numpy(self) -> Array:
        """Returns the array."""
        return self._array

    def update_inplace(self, array: Array) -> None:
        """Copies the elements of an array of the same type and shape into the value.

        Raises:
            InvalidInputError: the array has another type or shape.
        """
        mine = self._array
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
        return int(self._array.ctypes.data)

    def device_name(self) -> str:
        """Returns `cpu`."""
        return "cpu"

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
        self.inputs: dict[str, Array] = {}
        self.destinations: dict[str, Array | None] = {}
        """Destination of each bound output; `None` for a new array."""
        self.results: dict[str, Array] = {}
        """Outputs of the last run."""

    def bind_cpu_input(self, name: str, array: Array) -> None:
        """Binds an input to an array, which is read at each run."""
        self.inputs[name] = array

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """Binds an input to a value, which is read at each run."""
        self.inputs[name] = value.numpy()

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
        check_device(device_type)
        self.inputs[name] = array_at(buffer_ptr, np.dtype(element_type), tuple(shape))

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
        check_device(device_type)
        array = None
        if buffer_ptr is not None:
            if element_type is None or shape is None:
                raise InvalidInputError(
                    f"output '{name}' is bound to an address; give element_type and shape, too"
                )
            array = array_at(buffer_ptr, np.dtype(element_type), tuple(shape))
        self._bind_output(name, array)

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """Binds an output to the memory of this value."""
        self._bind_output(name, value.numpy())

    def get_outputs(self) -> list[OrtValue]:
        """Returns the outputs of the last run, in the order in which they were bound."""
        return [OrtValue(array) for array in self.copy_outputs_to_cpu()]

    def copy_outputs_to_cpu(self) -> list[Array]:
        """Returns the outputs of the last run as arrays."""
        return [self.results[name] for name in self.destinations if name in self.results]

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

    def _bind_output(self, name: str, array: Array | None) -> None:
        if name not in self._known:
            raise InvalidInputError(
                f"there is no output '{name}'; the model's are {', '.join(self._known)}"
            )
        self.destinations[name] = array


def check_device(device_type: str) -> None:
    """Refuses memory of another device.

    Raises:
        InvalidInputError: it is not the processor's.
    """
    if device_type not in ("cpu", "Cpu", "CPU"):
        raise InvalidInputError(f"device_type is {device_type!r}, accepted is 'cpu'")
