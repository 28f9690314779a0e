"""Checked `TensorProto`s (see `check`) as numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import cast

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from byoc_mlir.errors import InvalidModelError, UnsafeModelError
from byoc_mlir.frontend.files.external_data import ExternalFiles
from byoc_mlir.frontend.files.tensor_check import external_entries, payload_bytes
from byoc_mlir.tensors import Array


class TensorReader:
    """Reader of one model's tensors; caches the tensors of each graph until `let_go`.

    Args:
        files: the model's external data in files; `None` for a model that was not read from a file.
        arrays: external data in memory, by location; see `in_memory.ModelInMemory`.
    """

    def __init__(self, files: ExternalFiles | None, arrays: Mapping[str, Array] | None = None):
        self._files = files
        self._arrays = dict(arrays or {})
        self._graphs: dict[int, tuple[onnx.GraphProto, Mapping[str, Array]]] = {}

    def __reduce__(
        self,
    ) -> tuple[type[TensorReader], tuple[ExternalFiles | None, Mapping[str, Array]]]:
        return TensorReader, (self._files, self._arrays)

    @staticmethod
    def beside(source: object) -> TensorReader:
        """Returns the reader for a model; `source` is the path of its file, or the model in another
        form.
        """
        is_path = isinstance(source, str | Path)
        return TensorReader(ExternalFiles(Path(source)) if is_path else None)

    def for_another(self, arrays: Mapping[str, Array] | None = None) -> TensorReader:
        """Returns a reader for a derived model; `arrays` replaces this reader's arrays."""
        return TensorReader(self._files, self._arrays if arrays is None else arrays)

    def check_unchanged(self) -> None:
        """Refuses external data that was changed in place after it was first read.

        Raises:
            InvalidModelError: a file was changed.
        """
        if self._files is not None:
            self._files.check_unchanged()

    def graph_tensors(self, graph: onnx.GraphProto) -> Mapping[str, Array]:
        """Returns the initializers of a graph by name; repeated calls return the same arrays.

        Raises:
            InvalidModelError: a tensor cannot be read; see `array`.
        """
        _, known = self._graphs.get(id(graph), (graph, None))
        if known is None:
            dense = {tensor.name: self.array(tensor) for tensor in graph.initializer}
            sparse = {item.values.name: self.dense_array(item) for item in graph.sparse_initializer}
            known = {**dense, **sparse}
            self._graphs[id(graph)] = (graph, known)
        return known

    def let_go(self) -> None:
        """Drops all cached tensors and in-memory arrays, so that only the IR keeps them alive."""
        self._graphs.clear()
        self._arrays.clear()

    @property
    def in_memory(self) -> Set[str]:
        """Returns the locations of external data that is in memory, not in a file."""
        return self._arrays.keys()

    def inline(self, graph: onnx.GraphProto) -> None:
        """Copies external data of a graph's initializers into the graph.

        Raises:
            InvalidModelError: a tensor cannot be read; see `array`.
        """
        for tensor in graph.initializer:
            if tensor.data_location == TensorProto.EXTERNAL:
                tensor.CopyFrom(numpy_helper.from_array(self.array(tensor), tensor.name))

    def array(self, tensor: TensorProto) -> Array:
        """Returns a tensor's content; external data is mapped, not copied, if its alignment
        allows.

        Raises:
            InvalidModelError: the data is missing, or its size does not fit the shape.
            UnsafeModelError: the location of external data is not allowed.
        """
        try:
            if tensor.data_location == TensorProto.EXTERNAL:
                return self._external_array(tensor)
            return numpy_helper.to_array(tensor)
        except ValueError as error:
            raise InvalidModelError(f"tensor '{tensor.name}': {error}") from error

    def dense_array(self, sparse: onnx.SparseTensorProto) -> Array:
        """Returns a sparse tensor as a dense array.

        Raises:
            InvalidModelError: an index is outside of the shape.
        """
        shape, values = tuple(sparse.dims), self.array(sparse.values)
        indices = self.array(sparse.indices)
        limits = np.asarray(shape if indices.ndim == 2 else [np.prod(shape)], np.int64)
        if ((indices < 0) | (indices >= limits)).any():
            raise InvalidModelError(
                f"sparse tensor '{sparse.values.name}': an index is outside of shape {list(shape)}"
            )
        dense = np.zeros(shape, values.dtype)
        if indices.ndim == 2:
            dense[tuple(indices.T)] = values
        else:
            dense.reshape(-1)[indices] = values
        return dense

    def _external_array(self, tensor: TensorProto) -> Array:
        what = f"tensor '{tensor.name}'"
        entries = external_entries(tensor)
        location = entries["location"]
        if location in self._arrays:
            return self._array_in_memory(tensor, location, what)
        if self._files is None:
            raise UnsafeModelError(
                f"{what}: in memory there is nothing at {location[:200]!r}, and the model did not"
                " come from a file; give the path of the model instead"
            )
        data = self._files.data(location, what)
        offset, expected = int(entries.get("offset", 0)), payload_bytes(tensor)
        length = int(entries.get("length", max(0, len(data) - offset)))
        if length != expected or offset + length > len(data):
            raise UnsafeModelError(
                f"{what}: external data is {length} bytes at offset {offset} of '{location}', which"
                f" has {len(data)}; the shape {list(tensor.dims)} needs {expected}"
            )
        if "checksum" in entries:
            self._files.verify_checksum(location, entries["checksum"], what)
        return _typed(tensor, data[offset : offset + length])

    def _array_in_memory(self, tensor: TensorProto, location: str, what: str) -> Array:
        array = self._arrays[location]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        shape = tuple(tensor.dims)
        if (array.dtype, array.shape) != (dtype, shape):
            raise InvalidModelError(
                f"{what}: in memory there is {array.dtype}{list(array.shape)} at"
                f" {location[:200]!r}, the model says {dtype}{list(shape)}"
            )
        return array


def _typed(tensor: TensorProto, data: memoryview) -> Array:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    shape = tuple(tensor.dims)
    if len(data) != dtype.itemsize * int(np.prod(shape, dtype=object)):  # several in one byte
        plain = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=bytes(data))
        return numpy_helper.to_array(plain)
    array = cast(Array, np.frombuffer(data, dtype).reshape(shape))
    return array if array.flags.aligned else array.copy()
