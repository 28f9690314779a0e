"""Checks of a `TensorProto`: type, dimensions and bytes; the files of a model's tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx
from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from byoc_mlir.errors import InvalidModelError, UnsafeModelError
from byoc_mlir.frontend.graphs import subgraphs
from byoc_mlir.limits import check_constant

MAX_RANK = 16

_FIELDS = (
    *("float_data", "int32_data", "string_data", "int64_data"),
    *("double_data", "uint64_data", "raw_data"),
)
_EXTERNAL_KEYS = frozenset({"location", "offset", "length", "checksum"})


@dataclass(frozen=True)
class TensorStorage:
    """Storage of an element type: bits per element, and the typed field with its packing."""

    bits: int
    field: str
    entries: int = 1
    """Entries of the field per element."""
    packed: int = 1
    """Elements per entry of the field."""


_STORAGE: dict[int, TensorStorage] = {
    TensorProto.FLOAT: TensorStorage(32, "float_data"),
    TensorProto.DOUBLE: TensorStorage(64, "double_data"),
    TensorProto.COMPLEX64: TensorStorage(64, "float_data", entries=2),
    TensorProto.COMPLEX128: TensorStorage(128, "double_data", entries=2),
    TensorProto.INT64: TensorStorage(64, "int64_data"),
    TensorProto.UINT32: TensorStorage(32, "uint64_data"),
    TensorProto.UINT64: TensorStorage(64, "uint64_data"),
    TensorProto.STRING: TensorStorage(0, "string_data"),
    TensorProto.INT32: TensorStorage(32, "int32_data"),
    **dict.fromkeys(
        (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT16, TensorProto.UINT16),
        TensorStorage(16, "int32_data"),
    ),
    **dict.fromkeys(
        (
            *(TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT8),
            *(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2),
            *(TensorProto.FLOAT8E5M2FNUZ, TensorProto.FLOAT8E8M0),
        ),
        TensorStorage(8, "int32_data"),
    ),
    **dict.fromkeys(
        (TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1),
        TensorStorage(4, "int32_data", packed=2),
    ),
    **dict.fromkeys(
        (TensorProto.INT2, TensorProto.UINT2), TensorStorage(2, "int32_data", packed=4)
    ),
}


def check_tensor(tensor: TensorProto, what: str) -> None:
    """Checks type, dimensions and the size of the stored data.

    Raises:
        InvalidModelError: the message names `what`, the found value and the expected one.
    """
    storage = _STORAGE.get(tensor.data_type)
    if storage is None:
        raise InvalidModelError(f"{what}: there is no tensor element type {tensor.data_type}")
    if len(tensor.dims) > MAX_RANK or any(size < 0 for size in tensor.dims):
        raise InvalidModelError(
            f"{what}: its shape is {list(tensor.dims)[: MAX_RANK + 1]}, accepted are up to"
            f" {MAX_RANK} dimensions of 0 and more"
        )
    if tensor.HasField("segment"):
        raise InvalidModelError(f"{what}: tensors in segments are not supported")
    used = [field for field in _FIELDS if len(getattr(tensor, field))]
    if tensor.data_location == TensorProto.EXTERNAL:
        if used or storage.bits == 0:
            raise InvalidModelError(f"{what}: external, but with data in the model ({used})")
        check_external_entry(tensor, what)
        return
    _check_payload(tensor, what, storage, used)


def _check_payload(tensor: TensorProto, what: str, storage: TensorStorage, used: list[str]) -> None:
    count = element_count(tensor)
    if len(used) > 1:
        raise InvalidModelError(f"{what}: its data is given twice, as {' and '.join(used)}")
    field = used[0] if used else storage.field
    if field == "raw_data":
        expected, unit = payload_bytes(tensor), "bytes"
    elif field == storage.field:
        expected, unit = -(-count // storage.packed) * storage.entries, "entries"
    else:
        raise InvalidModelError(
            f"{what}: its data is in {field}, for this element type it belongs in"
            f" {storage.field} or raw_data"
        )
    if storage.bits == 0 and field == "raw_data":
        raise InvalidModelError(f"{what}: strings cannot be raw data")
    found = len(getattr(tensor, field))
    if found != expected:
        raise InvalidModelError(
            f"{what}: {field} holds {found} {unit}, its shape {list(tensor.dims)} needs {expected}"
        )


def element_count(tensor: TensorProto) -> int:
    """Returns the number of elements of the tensor's shape."""
    return math.prod(tensor.dims)


def payload_bytes(tensor: TensorProto) -> int:
    """Returns the number of bytes of the elements in raw form."""
    return -(-element_count(tensor) * _STORAGE[tensor.data_type].bits // 8)


def external_entries(tensor: TensorProto) -> dict[str, str]:
    """Returns the entries that describe the external data."""
    return {entry.key: entry.value for entry in tensor.external_data}


def check_external_entry(tensor: TensorProto, what: str) -> None:
    """Checks the description of external data, without looking at the file.

    Raises:
        UnsafeModelError: a key is unknown, or a number is malformed or negative.
    """
    entries = external_entries(tensor)
    unknown = sorted(set(entries) - _EXTERNAL_KEYS)
    if unknown or "location" not in entries or len(entries) != len(tensor.external_data):
        raise UnsafeModelError(
            f"{what}: external data is described by {sorted(e.key for e in tensor.external_data)};"
            f" accepted are {sorted(_EXTERNAL_KEYS)}, each once, and location is required"
        )
    for key in ("offset", "length"):
        if not (entries.get(key, "0").isascii() and entries.get(key, "0").isdigit()):
            raise UnsafeModelError(
                f"{what}: {key} of external data is '{entries[key][:40]}', accepted are integers"
                " of 0 and more"
            )


def check_sparse_tensor(sparse: onnx.SparseTensorProto, what: str) -> None:
    """Checks the parts of a sparse tensor, and that they fit together.

    Raises:
        InvalidModelError: the parts do not fit together; the message names `what`.
        LimitExceededError: the tensor is too large to be made dense.
    """
    check_tensor(sparse.values, f"{what}, values")
    check_tensor(sparse.indices, f"{what}, indices")
    count, rank = element_count(sparse.values), len(sparse.dims)
    shape = list(sparse.indices.dims)
    if sparse.indices.data_type != TensorProto.INT64 or shape not in ([count], [count, rank]):
        raise InvalidModelError(
            f"{what}: indices must be int64[{count}] or int64[{count}, {rank}], found {shape}"
        )
    if rank > MAX_RANK or any(dim < 0 for dim in sparse.dims):
        raise InvalidModelError(
            f"{what}: its shape is {list(sparse.dims)[: MAX_RANK + 1]}, accepted are up to"
            f" {MAX_RANK} dimensions of 0 and more"
        )
    check_constant(sparse.dims, max(1, _STORAGE[sparse.values.data_type].bits // 8), what)


def external_locations(model: ModelProto) -> set[str]:
    """Returns the locations of the model's external data, relative to its folder."""
    tensors = [
        *_graph_tensors(model.graph),
        *(tensor for function in model.functions for tensor in _node_tensors(function.node)),
    ]
    return {
        external_entries(tensor)["location"]
        for tensor in tensors
        if tensor.data_location == TensorProto.EXTERNAL
    }


def _graph_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    yield from _parts(graph.sparse_initializer)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("sparse_tensor"):
                yield from _parts([attribute.sparse_tensor])
            yield from _parts(attribute.sparse_tensors)
        for graph in subgraphs(node):
            yield from _graph_tensors(graph)


def _parts(sparse: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)
