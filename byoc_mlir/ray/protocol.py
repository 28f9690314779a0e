"""Requests and answers of the Open Inference Protocol, version 2, over HTTP."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.ray.datatypes import Array, datatype, of_bytes, of_json, to_bytes, to_json
from byoc_mlir.ray.refusals import RequestTooLargeError
from byoc_mlir.runtime.arguments import fits
from byoc_mlir.tensors import TensorInfo

HEADER_LENGTH = "inference-header-content-length"
"""Header with the length of a body's JSON; the bytes of tensors follow the JSON."""

MOST_ELEMENTS = 2_000_000
"""Maximum number of elements in the JSON of a request or an answer: Python reads or writes as many
in about a second.
"""

_LARGEST = 1 << 200
"""Largest size in a shape: the product of 64 such sizes can still be written in decimal."""

_JSON = "application/json"
_BYTES = "application/octet-stream"


@dataclass(frozen=True)
class Answer:
    """Answer to the client."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": _JSON})

    @staticmethod
    def of(document: object, status: int = 200) -> Answer:
        """Returns an answer whose body is a JSON document."""
        return Answer(status, json.dumps(document, allow_nan=False).encode())


@dataclass(frozen=True)
class Inference:
    """Client's request to run the model."""

    arrays: Mapping[str, Array]
    id: str | None
    outputs: Mapping[str, bool]
    """Requested outputs by name; `True` for outputs that are sent as bytes."""


def read_inference(
    body: bytes,
    header_length: str | None,
    inputs: Sequence[TensorInfo],
    outputs: Sequence[str],
    elements: int = MOST_ELEMENTS,
) -> Inference:
    """Parses a request to run a model.

    Args:
        header_length: the value of the header of that name, if there is one.
        inputs: inputs of the model.
        outputs: names of the model's outputs.
        elements: the most elements that the JSON document may have.

    Raises:
        InvalidInputError: the request is malformed, or does not fit the model.
        RequestTooLargeError: the document has too many elements.
    """
    end = _header_end(body, header_length)
    document = _object(_parsed(body[:end], elements), "the request")
    tail = _Tail(body[end:])
    known = {info.name: info for info in inputs}
    arrays: dict[str, Array] = {}
    for one in _list(document, "inputs", "the request"):
        name, array = _tensor(one, known, tail)
        if name in arrays:
            raise InvalidInputError(f"input '{name}' is given twice")
        arrays[name] = array
    tail.check_end()
    missing = [str(info) for info in inputs if info.name not in arrays]
    if missing:
        raise InvalidInputError(f"inputs are missing: {', '.join(missing)}")
    identity = document.get("id")
    if identity is not None and not isinstance(identity, str):
        raise InvalidInputError("the request's id is no text")
    return Inference(arrays, identity, _wanted(document, outputs))


def inference_answer(
    model: str,
    asked: Inference,
    outputs: Mapping[str, Any],
    version: str,
    elements: int = MOST_ELEMENTS,
) -> Answer:
    """Returns the answer with the requested outputs.

    Args:
        elements: the most elements that are written as JSON.

    Raises:
        InvalidInputError: an output cannot be written in the requested form.
    """
    in_json = elements_of(outputs[name] for name, as_bytes in asked.outputs.items() if not as_bytes)
    if in_json > elements:
        raise InvalidInputError(
            f"the outputs have {in_json} elements, as JSON accepted are {elements}; ask for them"
            ' with {"parameters": {"binary_data_output": true}}'
        )
    described: list[dict[str, Any]] = []
    tail: list[bytes] = []
    for name, as_bytes in asked.outputs.items():
        array = outputs[name]
        if not isinstance(array, np.ndarray):
            raise InvalidInputError(f"output '{name}' is no tensor, which the protocol cannot say")
        array = cast(Array, array)
        one: dict[str, Any] = {"name": name, "datatype": datatype(array.dtype)}
        one["shape"] = list(array.shape)
        if as_bytes:
            tail.append(to_bytes(array))
            one["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            one["data"] = to_json(array, f"output '{name}'")
        described.append(one)
    document = {"model_name": model, "model_version": version, "outputs": described}
    if asked.id is not None:
        document["id"] = asked.id
    answer = Answer.of(document)
    if not tail:
        return answer
    headers = {"content-type": _BYTES, HEADER_LENGTH: str(len(answer.body))}
    return Answer(200, answer.body + b"".join(tail), headers)


def elements_of(outputs: Iterable[Any]) -> int:
    """Returns the number of elements of some outputs."""
    return sum(getattr(output, "size", 0) for output in outputs)


def tensor_metadata(info: TensorInfo) -> dict[str, Any]:
    """Returns the metadata of an input or output; unknown sizes are -1."""
    shape = [size if isinstance(size, int) else -1 for size in info.shape]
    return {"name": info.name, "datatype": datatype(info.dtype), "shape": shape}


class _Tail:
    """Bytes after the document, read tensor by tensor."""

    def __init__(self, data: bytes):
        self._data = data
        self._place = 0

    def take(self, size: int) -> bytes:
        """Returns the next `size` bytes and moves past them."""
        found = self._data[self._place : self._place + size]
        if len(found) < size:
            raise InvalidInputError(f"the body ends {size - len(found)} bytes before its tensors")
        self._place += size
        return found

    def check_end(self) -> None:
        """Refuses bytes that belong to no tensor."""
        left = len(self._data) - self._place
        if left:
            raise InvalidInputError(f"{left} bytes of the body belong to no tensor")


def _header_end(body: bytes, header_length: str | None) -> int:
    if header_length is None:
        return len(body)
    if not header_length.isdecimal() or len(header_length) > 12 or int(header_length) > len(body):
        raise InvalidInputError(
            f"{HEADER_LENGTH} is {header_length!r:.40}, accepted are 0 to {len(body)}"
        )
    return int(header_length)


def _parsed(text: bytes, elements: int) -> object:
    """Parses a document; too many elements are refused before memory is spent on them.

    Python's parser blocks the other requests of a process while it runs.
    """
    found = sum(text.count(mark) for mark in (b",", b"[", b"{"))
    if found > elements:
        raise RequestTooLargeError(
            f"the request's JSON has {found} elements, accepted are {elements}; send tensors as"
            " bytes (binary_data_size), or fewer rows at once"
        )
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the request is no JSON: {error}") from error


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInputError(f"{what} is {type(value).__name__}, accepted is an object")
    return cast("dict[str, Any]", value)


def _list(document: Mapping[str, Any], key: str, what: str) -> Sequence[object]:
    found: object = document.get(key)
    if not isinstance(found, list):
        raise InvalidInputError(f"{what} has no list '{key}'")
    return cast("list[object]", found)


def _parameters(document: Mapping[str, Any], what: str) -> Mapping[str, Any]:
    return _object(document.get("parameters", {}), f"{what}: parameters")


def _tensor(value: object, known: Mapping[str, TensorInfo], tail: _Tail) -> tuple[str, Array]:
    document = _object(value, "an input")
    name: object = document.get("name")
    if not isinstance(name, str) or name not in known:
        listed = ", ".join(map(str, known.values()))
        raise InvalidInputError(f"there is no input {name!r:.80}; the model takes {listed}")
    info, what = known[name], f"input '{name}'"
    if document.get("datatype") != datatype(info.dtype):
        raise InvalidInputError(
            f"{what}: datatype is {document.get('datatype')!r:.40}, accepted is"
            f" '{datatype(info.dtype)}'"
        )
    shape = _shape(_list(document, "shape", what), info)
    size: object = _parameters(document, what).get("binary_data_size")
    if size is None:
        elements = of_json(document.get("data"), info.dtype, what)
    elif isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        elements = of_bytes(tail.take(size), info.dtype, what)
    else:
        raise InvalidInputError(f"{what}: binary_data_size is {size!r:.40}, no number of bytes")
    if elements.size != math.prod(shape):
        raise InvalidInputError(
            f"{what}: shape {list(shape)} has {math.prod(shape)} elements, found {elements.size}"
        )
    try:
        return name, elements.reshape(shape)
    except (ValueError, OverflowError) as error:  # one size is 0, another one too large
        raise InvalidInputError(f"{what}: there is no array of shape {list(shape)}") from error


def _shape(sizes: Sequence[object], info: TensorInfo) -> tuple[int, ...]:
    shape = tuple(size for size in sizes if isinstance(size, int) and not isinstance(size, bool))
    are_sizes = len(shape) == len(sizes) and all(0 <= size <= _LARGEST for size in shape)
    if not are_sizes or not fits(info.shape, shape):
        raise InvalidInputError(f"input '{info.name}': shape is {sizes!r:.80}, accepted is {info}")
    return shape


def _wanted(document: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, bool]:
    """Returns the requested outputs, `True` for outputs as bytes; all outputs if the request names
    none.
    """
    default: object = _parameters(document, "the request").get("binary_data_output", False)
    if "outputs" not in document:
        return dict.fromkeys(outputs, default is True)
    wanted: dict[str, bool] = {}
    for one in _list(document, "outputs", "the request"):
        described = _object(one, "an output")
        name: object = described.get("name")
        if not isinstance(name, str) or name not in outputs:
            raise InvalidInputError(
                f"there is no output {name!r:.80}; the model gives {', '.join(outputs)}"
            )
        as_bytes: object = _parameters(described, f"output '{name}'").get("binary_data", default)
        wanted[name] = as_bytes is True
    return wanted
