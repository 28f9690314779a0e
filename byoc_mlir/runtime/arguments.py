"""Checks of the inputs that a caller passes to `run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.boundary import check_argument
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.runtime.program import Array
from byoc_mlir.tensors import TensorInfo

Shape: TypeAlias = tuple[int, ...]
Inputs: TypeAlias = Mapping[str, Any] | Sequence[Any]
"""Inputs by name, or in the order of the model's inputs."""

_ndarray = np.ndarray  # found faster than an attribute


class Arguments:
    """Inputs of a model; checks the values that are passed for them."""

    def __init__(self, inputs: Sequence[TensorInfo]):
        self._inputs = tuple(inputs)
        self._names = {info.name: info for info in inputs}
        self._shapes = [info.shape for info in inputs]
        self._texts = [place for place, info in enumerate(inputs) if info.dtype == object]
        is_on_host = all(info.space == HOST_SPACE for info in inputs)
        self._count = len(self._inputs) if is_on_host else -1
        """Number of the inputs, if arrays of NumPy may be taken as they are."""

    def as_they_are(self, inputs: Inputs) -> list[Array] | None:
        """Returns the inputs in order, or None if an input needs a conversion or is invalid."""
        arrays = self.of_any_shape(inputs)
        if arrays is None or [array.shape for array in arrays] != self._shapes:
            return None
        return arrays

    def of_any_shape(self, inputs: Inputs) -> list[Array] | None:
        """Returns the inputs as `as_they_are` does, but does not check shapes."""
        if type(inputs) is not dict or len(inputs) != self._count:
            return None
        arrays: list[Array] = []
        for info in self._inputs:  # unrolled: the checks of one array take as long as a call
            array = inputs.get(info.name)
            if (
                type(array) is not _ndarray
                or array.dtype is not info.dtype
                or not array.flags.c_contiguous
            ):
                return None
            arrays.append(array)
        return arrays

    def checked(self, inputs: Inputs) -> list[Array]:
        """Returns the inputs in order, as contiguous arrays of the model's types.

        Raises:
            InvalidInputError: an input is missing or unknown, or has a wrong dtype or shape.
        """
        arrays = self.of_any_shape(inputs)
        if arrays is None or not all(map(fits, self._shapes, [one.shape for one in arrays])):
            return list(map(_checked_array, self._inputs, self.by_name(inputs).values()))
        for place in self._texts:
            if not _are_texts(arrays[place]):
                arrays[place] = _texts(self._inputs[place], arrays[place])
        return arrays

    def some(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """Returns some of the inputs by name, as contiguous arrays of the model's types.

        Raises:
            InvalidInputError: an input is unknown, or has a wrong dtype or shape.
        """
        if inputs.keys() - self._names.keys():
            raise InvalidInputError(self._name_mismatch({**self._names, **inputs}))
        return {name: _checked_array(self._names[name], one) for name, one in inputs.items()}

    def by_name(self, inputs: Inputs) -> dict[str, Any]:
        """Returns the values of all inputs in order, unchecked.

        Raises:
            InvalidInputError: an input is missing or unknown.
        """
        if isinstance(inputs, Mapping):
            if inputs.keys() != self._names.keys():
                raise InvalidInputError(self._name_mismatch(inputs))
            return {name: inputs[name] for name in self._names}
        values = _as_list(inputs)
        if len(values) != len(self._names):
            raise InvalidInputError(
                f"the model takes {len(self._names)} inputs"
                f" ({', '.join(self._names)}), found {len(values)}"
            )
        return dict(zip(self._names, values, strict=True))

    def shapes(self, shapes: Mapping[str, Any]) -> dict[str, Shape]:
        """Returns the shapes of all inputs in order.

        Raises:
            InvalidInputError: a shape is missing, or does not fit.
        """
        accepted = "a dictionary of input names to shapes"
        check_argument("shapes", shapes, Mapping, accepted, InvalidInputError)
        missing = [name for name in self._names if name not in shapes]
        if missing:
            raise InvalidInputError(f"no shape is given for input(s) {', '.join(missing)}")
        ordered = {info.name: _as_shape(info, shapes[info.name]) for info in self._inputs}
        for info in self._inputs:
            _check_shape(info, ordered[info.name])
        return ordered

    def _name_mismatch(self, inputs: Mapping[str, Any]) -> str:
        unknown = [str(name) for name in inputs if name not in self._names]
        missing = [name for name in self._names if name not in inputs]
        parts = [f"unknown input(s) {', '.join(unknown)}"] if unknown else []
        parts += [f"missing input(s) {', '.join(missing)}"] if missing else []
        return f"{'; '.join(parts)}; the model takes {', '.join(map(str, self._inputs)) or 'none'}"


def _as_list(inputs: Any) -> list[Any]:
    if isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes):
        return list(cast(Sequence[Any], inputs))
    raise InvalidInputError(
        "inputs must be a dictionary of arrays by name, or a sequence of arrays, found"
        f" {type(inputs).__name__}"
    )


def _as_shape(info: TensorInfo, sizes: Any) -> Shape:
    """Returns a shape that the caller passed, as a tuple of sizes."""
    shape = tuple(sizes) if isinstance(sizes, Sequence) else (sizes,)
    if not all(isinstance(size, int | np.integer) and size >= 0 for size in shape):
        raise InvalidInputError(
            f"the shape given for input '{info.name}' is {sizes!r}, accepted are whole numbers of 0"
            " and more"
        )
    return tuple(map(int, shape))


def _checked_array(info: TensorInfo, value: Any) -> Array:
    if info.space != HOST_SPACE:
        value = _on_device(value)
    array = value if isinstance(value, np.ndarray) else _as_array(info, value)
    if info.dtype == object:
        array = _texts(info, array)
    if array.dtype != info.dtype:
        raise InvalidInputError(
            f"input '{info.name}' must be of {info.dtype}, found {array.dtype};"
            f" convert it with .astype({str(info.dtype)!r})"
        )
    if array.shape == (1,) and info.shape == ():
        array = array.reshape(())  # ONNX Runtime takes it, and packages rely on that
    _check_shape(info, array.shape)
    if not array.flags.c_contiguous or not array.dtype.isnative:
        return np.ascontiguousarray(array, info.dtype).reshape(array.shape)
    return array


def _on_device(value: Any) -> Any:
    """Returns the handle of an array on a device; returns other values unchanged."""
    from byoc_mlir.runtime.device_array import DeviceArray, is_on_device  # few models need it

    return DeviceArray.imported(value).handle() if is_on_device(value) else value


def _as_array(info: TensorInfo, value: Any) -> Array:
    try:
        if hasattr(value, "__dlpack__"):
            return np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
        return np.asarray(value, object) if info.dtype == object else _numbers(info, value)
    except MemoryError:
        raise
    except Exception as error:  # the caller's class makes the array, and raises what it likes
        raise InvalidInputError(
            f"input '{info.name}' must be an array of {info}; the {type(value).__name__} that was"
            f" found makes none: {error}"
        ) from error


def _numbers(info: TensorInfo, value: Any) -> Array:
    """Converts nested lists, or a number, to an array of the input's type.

    Raises:
        ValueError: NumPy would convert strings or `None` to numbers, or drop fractions or NaNs.
    """
    found = np.asarray(value)
    if found.dtype.kind in "US":
        raise ValueError("it holds texts")
    if found.dtype == object and any(one is None for one in found.flat):
        raise ValueError("it holds None")
    with np.errstate(invalid="ignore"):
        array = np.asarray(value, info.dtype)
    if found.dtype.kind == "f" and info.dtype.kind in "biu" and not np.array_equal(found, array):
        raise ValueError(f"it holds values that are not of {info.dtype}")
    return array


def _texts(info: TensorInfo, array: Array) -> Array:
    """Converts an array to Python strings; bytes are decoded as UTF-8.

    Raises:
        InvalidInputError: an element is no string, but for example None or NaN from a table.
    """
    if array.dtype.kind not in "USTO":
        return array
    texts = array.astype(object, copy=False)
    if _are_texts(texts):
        return texts
    texts = texts.copy()
    for place, one in enumerate(texts.flat):
        if isinstance(one, bytes):
            texts.flat[place] = one.decode(errors="replace")
        elif not isinstance(one, str):
            raise InvalidInputError(
                f"input '{info.name}' must hold texts, found {one!r:.200} ({type(one).__name__}) as"
                f" element {place}; fill in what is missing, as with ''"
            )
    return texts


def _are_texts(array: Array) -> bool:
    """True if all elements are strings; to look at the type of each takes four times as long."""
    try:
        "".join(array.ravel().tolist())
    except TypeError:
        return False
    return True


def _check_shape(info: TensorInfo, shape: Shape) -> None:
    if shape == info.shape:
        return
    if not fits(info.shape, shape):
        raise InvalidInputError(
            f"input '{info.name}' must have shape [{', '.join(map(str, info.shape))}],"
            f" found {list(shape)}"
        )


def fits(expected: Sequence[int | str], shape: Shape) -> bool:
    """True if a shape has the expected sizes; a name stands for any size."""
    if len(shape) != len(expected):
        return False
    for size, found in zip(expected, shape):  # noqa: B905, it takes longer, as does `all`
        if size != found and not isinstance(size, str):
            return False
    return True
