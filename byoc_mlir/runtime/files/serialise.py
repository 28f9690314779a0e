"""Serialisation of frozen dataclasses to JSON and back; reading checks types."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from byoc_mlir.dims import Dim, parse_size
from byoc_mlir.errors import InvalidArtifactError, UndecidedSizeError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Blob: TypeAlias = "bytes | memoryview"
_T = TypeVar("_T")

_BLOB = "blob"
_SCALARS = frozenset({bool, int, float, str})


def encode(value: object, blobs: list[Blob]) -> Json:
    """Returns `value` as JSON; bytes and arrays are appended to `blobs`, and JSON has their
    indices.

    Supported are dataclasses, tuples, mappings from strings, numbers, strings, `Path`, `dtype`,
    symbolic sizes, bytes and arrays.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path | Dim):
        return str(value)
    if isinstance(value, np.dtype):
        return cast("np.dtype[Any]", value).name
    if isinstance(value, bytes | memoryview):
        return {_BLOB: _add(value, blobs)}
    if isinstance(value, np.ndarray):
        return _encode_array(cast("np.ndarray[Any, Any]", value), blobs)
    if is_dataclass(value):
        return encode_fields(value, blobs, without="")
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {key: encode(item, blobs) for key, item in items}
    assert isinstance(value, tuple), f"{type(value).__name__} cannot be written as JSON"
    return [encode(item, blobs) for item in cast("tuple[object, ...]", value)]


def encode_fields(value: object, blobs: list[Blob], without: str) -> dict[str, Json]:
    """Returns the fields of a dataclass except `without` as JSON, like `encode`."""
    assert is_dataclass(value)
    names = [item.name for item in fields(value) if item.name != without]
    return {name: encode(getattr(value, name), blobs) for name in names}


def array_bytes(array: np.ndarray[Any, Any]) -> memoryview:
    """Returns the bytes of an array; copies it only if it is not dense."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def decode(kind: type[_T], value: Json, blobs: Sequence[memoryview], where: str = "") -> _T:
    """Returns the value of type `kind` that `encode` wrote.

    Raises:
        InvalidArtifactError: the JSON is of another type; the message names its path.
    """
    return cast("_T", _decode(kind, value, blobs, where or kind.__name__))


def decode_fields(
    kind: type[_T], value: Json, blobs: Sequence[memoryview], given: Mapping[str, object]
) -> _T:
    """Returns a dataclass, with all fields from JSON except the given ones.

    Raises:
        InvalidArtifactError: as for `decode`.
    """
    where = kind.__name__
    items = _checked(dict, value, where, "an object")
    hints = _hints(kind)
    names = [item.name for item in fields(cast(Any, kind)) if item.name not in given]
    if items.keys() != set(names):
        different = sorted(items.keys() ^ set(names))
        raise InvalidArtifactError(f"{where}: unknown or missing: {', '.join(different)[:200]}")
    decoded = {name: _decode(hints[name], items[name], blobs, f"{where}.{name}") for name in names}
    return kind(**given, **decoded)


def _add(data: Blob, blobs: list[Blob]) -> int:
    blobs.append(data)
    return len(blobs) - 1


def _encode_array(array: np.ndarray[Any, Any], blobs: list[Blob]) -> Json:
    number = _add(array_bytes(array), blobs)
    return {"dtype": array.dtype.name, "shape": list(array.shape), _BLOB: number}


def _decode(kind: Any, value: Json, blobs: Sequence[memoryview], where: str) -> object:
    if type(value) is kind and kind in _SCALARS:
        return value  # most values are; the rest of this function takes ten times as long
    origin = typing.get_origin(kind) or kind
    if origin is np.ndarray:
        return _decode_array(value, blobs, where)
    if kind is bytes:
        return bytes(_blob(value, blobs, where))
    if origin is types.UnionType or origin is typing.Union:
        return _decode_union(typing.get_args(kind), value, blobs, where)
    if origin is typing.Literal:
        return _decode_literal(typing.get_args(kind), value, where)
    if kind is Dim:
        return _dim(_checked(str, value, where, "a size"), where)
    if is_dataclass(kind):
        return decode_fields(cast("type[object]", kind), value, blobs, {})
    if origin is tuple:
        return _decode_tuple(typing.get_args(kind), value, blobs, where)
    if origin is Mapping or origin is dict:
        items = _checked(dict, value, where, "an object")
        inner = typing.get_args(kind)[1]
        return {key: _decode(inner, item, blobs, f"{where}.{key}") for key, item in items.items()}
    return _decode_scalar(origin, value, where)


def _decode_scalar(kind: Any, value: Json, where: str) -> object:
    if kind is np.dtype:
        return _dtype(_checked(str, value, where, "a dtype"), where)
    if kind is Path:
        return _path(_checked(str, value, where, "a path"), where)
    if kind is float and type(value) is int:
        return float(value)
    return _checked(kind, value, where, kind.__name__)


def _path(text: str, where: str) -> Path:
    if "\0" in text:
        raise InvalidArtifactError(f"{where}: {text[:40]!r} is no path")
    return Path(text)


def _dim(text: str, where: str) -> Dim:
    try:
        size = parse_size(text)
    except UndecidedSizeError as error:
        raise InvalidArtifactError(f"{where}: {error}") from error
    return _checked(Dim, size, where, "a symbolic size")


@cache
def _hints(kind: type[object]) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def _checked(kind: type[_T], value: object, where: str, what: str) -> _T:
    if type(value) is not kind:
        raise InvalidArtifactError(
            f"{where}: expected {what}, found {type(value).__name__} {str(value)[:40]!r}"
        )
    return value


def _decode_union(
    kinds: Sequence[Any], value: Json, blobs: Sequence[memoryview], where: str
) -> object:
    """Returns a value of the only member of the union that accepts this kind of JSON."""
    problems: list[str] = []
    for kind in kinds:
        if kind is types.NoneType:
            if value is None:
                return None
            continue
        try:
            return _decode(kind, value, blobs, where)
        except InvalidArtifactError as error:
            problems.append(str(error))
    raise InvalidArtifactError("; or ".join(problems))


def _decode_literal(accepted: Sequence[object], value: Json, where: str) -> object:
    if value not in accepted:
        raise InvalidArtifactError(f"{where}: {str(value)[:40]!r} is none of {accepted}")
    return value


def _decode_tuple(
    kinds: Sequence[Any], value: Json, blobs: Sequence[memoryview], where: str
) -> tuple[object, ...]:
    items = _checked(list, value, where, "a list")
    if len(kinds) == 2 and kinds[1] is ...:
        kinds = [kinds[0]] * len(items)
    if len(kinds) != len(items):
        raise InvalidArtifactError(f"{where}: expected {len(kinds)} items, found {len(items)}")
    pairs = zip(kinds, items, strict=True)
    return tuple(
        _decode(kind, item, blobs, f"{where}[{i}]") for i, (kind, item) in enumerate(pairs)
    )


def _blob(value: Json, blobs: Sequence[memoryview], where: str) -> memoryview:
    number = _checked(int, _checked(dict, value, where, "bytes").get(_BLOB), where, "a number")
    if not 0 <= number < len(blobs):
        raise InvalidArtifactError(f"{where}: there is no block of bytes with number {number}")
    return blobs[number]


def _decode_array(value: Json, blobs: Sequence[memoryview], where: str) -> np.ndarray[Any, Any]:
    items = _checked(dict, value, where, "an array")
    dtype = _dtype(_checked(str, items.get("dtype"), where, "a dtype"), where)
    shape = _decode_tuple([int, ...], items.get("shape"), blobs, where)
    sizes = [size for size in shape if isinstance(size, int) and size >= 0]
    data = _blob(value, blobs, where)
    if len(sizes) != len(shape) or math.prod(sizes) * dtype.itemsize != data.nbytes:
        raise InvalidArtifactError(f"{where}: {dtype}{list(shape)} is not {data.nbytes} bytes")
    return np.frombuffer(data, np.uint8).view(dtype).reshape(sizes)


def _dtype(name: str, where: str) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(name)
    except TypeError:
        import ml_dtypes  # the types that numpy lacks; most models have none

        kind: object = getattr(ml_dtypes, name, None)
        if not isinstance(kind, type):
            raise InvalidArtifactError(f"{where}: there is no dtype {name[:40]!r}") from None
        dtype = np.dtype(kind)
    if dtype.hasobject:
        raise InvalidArtifactError(f"{where}: dtype {name!r} is not accepted")
    return dtype
