"""Datatypes of the Open Inference Protocol, and tensors in JSON and as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.tensors import Array

_DTYPES = {
    "BOOL": np.dtype(np.bool_),
    **{f"UINT{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "BYTES": np.dtype(object),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

_LENGTH = struct.Struct("<I")
"""Length of a text in bytes, which precedes the text."""

_KINDS = {"b": "b", "i": "iu", "u": "iu", "f": "iuf", "V": "iuf"}
"""Kinds of NumPy arrays that a JSON list may be read as, by the kind of the tensor's elements."""


_MOST_DIMENSIONS = 64
"""Maximum number of dimensions of a NumPy array."""


def datatype(dtype: np.dtype[Any]) -> str:
    """Returns the protocol's name of an element type.

    Raises:
        InvalidInputError: it has no name for them.
    """
    if dtype not in _NAMES:
        raise InvalidInputError(f"the protocol has no datatype for elements of {dtype}")
    return _NAMES[dtype]


def of_json(data: object, dtype: np.dtype[Any], what: str) -> Array:
    """Returns the elements of a tensor as a 1-D array, from a list that may be nested.

    Args:
        what: the tensor, for errors.

    Raises:
        InvalidInputError: they are something else than elements of that type.
    """
    if not isinstance(data, list):
        raise InvalidInputError(f"{what}: data is {type(data).__name__}, accepted is a list")
    if dtype == np.dtype(object):
        return _texts(cast("list[object]", data), what)
    try:
        found: Array = np.array(cast(Any, data)).ravel()
    except ValueError as error:
        raise InvalidInputError(f"{what}: data is not as lists of equal lengths") from error
    if not found.size:
        return np.empty(0, dtype)
    if found.dtype.kind not in _KINDS[dtype.kind]:
        raise InvalidInputError(f"{what}: data has elements that are no {datatype(dtype)}")
    with np.errstate(all="ignore"):
        made = found.astype(dtype)
    same = made == found if dtype.kind in "iu" else np.isfinite(made) == np.isfinite(found)
    if not np.all(same):
        raise InvalidInputError(f"{what}: data has numbers that {datatype(dtype)} cannot hold")
    return made


def _texts(data: list[object], what: str) -> Array:
    texts = list(_leaves(data, what, 1))
    try:
        "".join(cast("list[str]", texts)).encode()
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidInputError(f"{what}: data has elements that are no text") from error
    return _objects(texts)


def _leaves(data: list[object], what: str, depth: int) -> Iterator[object]:
    if depth > _MOST_DIMENSIONS:
        raise InvalidInputError(f"{what}: data has more than {_MOST_DIMENSIONS} lists in lists")
    for one in data:
        if isinstance(one, list):
            yield from _leaves(cast("list[object]", one), what, depth + 1)
        else:
            yield one


def _objects(values: Sequence[object]) -> Array:
    array = np.empty(len(values), np.dtype(object))
    array[:] = values
    return array


def to_json(array: Array, what: str) -> list[Any]:
    """Returns the elements as a flat list for JSON.

    Raises:
        InvalidInputError: JSON cannot express an element; the client can request bytes.
    """
    datatype(array.dtype)
    flat = array.ravel()
    if array.dtype.kind in "fV":
        if not np.all(np.isfinite(flat)):
            raise InvalidInputError(
                f"{what}: JSON has no infinity and no NaN; ask for it with"
                ' {"parameters": {"binary_data": true}}'
            )
        flat = flat.astype(np.float64)
    return [_text(one) for one in flat] if array.dtype.kind == "O" else flat.tolist()


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def of_bytes(data: bytes, dtype: np.dtype[Any], what: str) -> Array:
    """Returns the elements of a tensor as a 1-D array; they are little-endian, and a 4-byte length
    precedes each text.

    Raises:
        InvalidInputError: they are no whole number of elements.
    """
    if dtype == np.dtype(object):
        try:
            return _objects(list(_cut(data)))
        except (struct.error, UnicodeDecodeError) as error:
            raise InvalidInputError(f"{what}: its bytes are no texts behind lengths") from error
    if len(data) % dtype.itemsize:
        raise InvalidInputError(
            f"{what}: {len(data)} bytes are no whole number of {datatype(dtype)}"
        )
    found = np.frombuffer(data, dtype)
    if dtype.kind == "b" and np.any(found.view(np.uint8) > 1):
        raise InvalidInputError(f"{what}: bytes of BOOL are 0 or 1")
    return found


def _cut(data: bytes) -> Iterator[str]:
    place = 0
    while place < len(data):
        (length,) = _LENGTH.unpack_from(data, place)
        place += _LENGTH.size + length
        if place > len(data):
            raise struct.error("a text ends behind the data")
        yield data[place - length : place].decode()


def to_bytes(array: Array) -> bytes:
    """Returns the elements as bytes in the format that `of_bytes` reads."""
    datatype(array.dtype)
    if array.dtype.kind != "O":
        return array.tobytes()
    texts = [_text(one).encode() for one in array.ravel()]
    return b"".join(_LENGTH.pack(len(text)) + text for text in texts)
