"""oneDNN called at once by `ctypes`: products of matrices, and what primitives are made of.

All read and write arrays where they lie. Any number of Python threads may call at once.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from byoc_mlir.backends.onednn import ExecutionArgument, load_library
from byoc_mlir.backends.onednn_types import (
    CPU,
    IN_ORDER,
    USER_SCRATCHPAD,
    Arg,
    DataType,
    Query,
    Status,
)
from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.system.addresses import address_of, c_array
from byoc_mlir.runtime.system.forks import ForkSafeLock
from byoc_mlir.runtime.system.signals import signals_held
from byoc_mlir.tensors import Array, aligned_empty

_ANY = 1
"""`dnnl_format_tag_any`: the primitive chooses."""

KEPT = 256
"""Primitives that are kept: those of the largest networks, some kilobytes of code each."""

_F32_BYTES = 4


@contextmanager
def use_threads(count: int) -> Generator[None]:
    """Calls inside, on this Python thread, run on so many of OpenMP's threads.

    Signals wait inside: products may have the stack pointer elsewhere, see docs/dnnl.md.
    """
    openmp = dnnl().handle
    before = openmp.omp_get_max_threads()
    openmp.omp_set_num_threads(count)
    try:
        with signals_held():
            yield
    finally:
        openmp.omp_set_num_threads(before)


def sgemm(a: Array, b: Array, c: Array, *, alpha: float = 1.0, beta: float = 0.0) -> None:
    """c = alpha a b + beta c, of `f32` matrices.

    Args:
        a, b: of any strides; copied where neither its lines nor its columns are in one piece.
        c: its lines are in one piece. What it held is not read where beta is 0.

    Raises:
        ValueError: they are of another type, or do not fit.
    """
    (lines, inner), columns = a.shape, b.shape[1]
    if not a.dtype == b.dtype == c.dtype == np.float32:
        raise ValueError(f"{a.dtype} and {b.dtype} to {c.dtype}, accepted is float32")
    if b.shape[0] != inner or c.shape != (lines, columns) or not _has_whole_lines(c):
        raise ValueError(f"{a.shape} and {b.shape} have no product in {c.shape}")
    if not lines or not columns:
        return
    if not inner:
        c[...] = beta * c if beta else 0
        return
    a_order, a, a_step = _operand(a)
    b_order, b, b_step = _operand(b)
    status = dnnl().sgemm(
        *(a_order, b_order, lines, columns, inner, alpha),
        *(address_of(a), a_step, address_of(b), b_step),
        *(beta, address_of(c), _step(c)),
    )
    _check("dnnl_sgemm", status)


def _operand(matrix: Array) -> tuple[bytes, Array, int]:
    """Whether its transpose is what lies there, the matrix, and the elements between its lines."""
    if _has_whole_lines(matrix):
        return b"N", matrix, _step(matrix)
    if _has_whole_lines(matrix.T):
        return b"T", matrix, _step(matrix.T)
    matrix = np.ascontiguousarray(matrix)
    return b"N", matrix, _step(matrix)


def _has_whole_lines(matrix: Array) -> bool:
    lines, columns = matrix.shape
    between, beside = matrix.strides
    is_dense = beside == _F32_BYTES or columns == 1
    return is_dense and (
        lines == 1 or (between >= columns * _F32_BYTES and between % _F32_BYTES == 0)
    )


def _step(matrix: Array) -> int:
    """The elements between two lines; strides say nothing where there is one line."""
    lines, columns = matrix.shape
    return columns if lines == 1 else matrix.strides[0] // _F32_BYTES


@dataclass(frozen=True)
class ArrangedWeights:
    """What a primitive reads of weights, and the layouts of those that are in one of its choice."""

    arrays: Mapping[Arg, Array]
    layouts: Mapping[Arg, Descriptor]


class _Arranging(Protocol):
    """A primitive that reads weights in a layout of its own."""

    @property
    def arrange(self) -> Callable[..., ArrangedWeights]:
        """The function that returns a copy of weights in its layout."""
        ...

    def reads(self, weights: ArrangedWeights) -> bool:
        """True if weights arranged for another size are in its layout."""
        ...


class KeptWeights:
    """Weights as primitives read them; constants are arranged once for all sizes.

    Args:
        constants: the weights, if they are constant; `None` for those that are not.
    """

    def __init__(self, constants: Sequence[Array | None]):
        self._constants = constants
        self._kept: ArrangedWeights | None = None

    def arranged(self, primitive: _Arranging, weights: Sequence[Array | None]) -> ArrangedWeights:
        """Returns the weights of a run in the layout of a primitive."""
        if any(one is not other for one, other in zip(weights, self._constants, strict=True)):
            return primitive.arrange(*weights)
        kept = self._kept  # another thread may put the same in its place
        if kept is None or not primitive.reads(kept):
            kept = self._kept = primitive.arrange(*weights)
        return kept


class Descriptor:
    """A `dnnl_memory_desc_t` of `f32`."""

    def __init__(self, handle: ctypes.c_void_p, owner: object = None):
        """
        Args:
            owner: what the descriptor is a part of; `None` where it is on its own.
        """
        self.handle, self._owner, self._library = handle, owner, dnnl()

    def __del__(self) -> None:
        if self._owner is None:
            self._library.handle.dnnl_memory_desc_destroy(self.handle)

    @classmethod
    def dense(cls, shape: tuple[int, ...]) -> Descriptor:
        """In order of the indices."""
        return cls.of_steps(shape, _steps(shape))

    @classmethod
    def channels_last(cls, shape: tuple[int, ...]) -> Descriptor:
        """Of an array that has its channels last; the library counts them as second."""
        batch, *spatial, channels = shape
        first, *between, last = _steps(shape)
        return cls.of_steps((batch, channels, *spatial), (first, last, *between))

    @classmethod
    def of_any_layout(cls, shape: tuple[int, ...]) -> Descriptor:
        """Of a layout that a primitive chooses."""
        handle = ctypes.c_void_p()
        status = dnnl().handle.dnnl_memory_desc_create_with_tag(
            ctypes.byref(handle), len(shape), c_numbers(shape), DataType.F32, _ANY
        )
        _check("dnnl_memory_desc_create_with_tag", status)
        return cls(handle)

    @classmethod
    def of_steps(cls, dims: tuple[int, ...], steps: tuple[int, ...]) -> Descriptor:
        """With so many elements between neighbours along each dimension."""
        handle = ctypes.c_void_p()
        status = dnnl().handle.dnnl_memory_desc_create_with_strides(
            ctypes.byref(handle), len(dims), c_numbers(dims), DataType.F32, c_numbers(steps)
        )
        _check("dnnl_memory_desc_create_with_strides", status)
        return cls(handle)

    def copy(self) -> Descriptor:
        """One that is on its own."""
        handle = ctypes.c_void_p()
        status = self._library.handle.dnnl_memory_desc_clone(ctypes.byref(handle), self.handle)
        _check("dnnl_memory_desc_clone", status)
        return Descriptor(handle)

    def is_same(self, other: Descriptor) -> bool:
        """Whether memory of one is memory of the other."""
        return bool(self._library.handle.dnnl_memory_desc_equal(self.handle, other.handle))

    def memory(self) -> Array:
        """New memory for what is described."""
        return aligned_empty((self._library.size_of(self.handle),), np.uint8)


class Primitive:
    """A primitive whose scratchpad is made for each run, so that runs may overlap."""

    def __init__(self, function: str, *arguments: Any):
        self._library = library = dnnl()
        self._description, self._handle = ctypes.c_void_p(), ctypes.c_void_p()
        _check(function, library.handle[function](ctypes.byref(self._description), *arguments))
        status = library.handle.dnnl_primitive_create(ctypes.byref(self._handle), self._description)
        _check("dnnl_primitive_create", status)
        self._descriptors: dict[int, Descriptor] = {}
        self._scratchpad = self.descriptor(Arg.SCRATCHPAD)

    @classmethod
    def reorder(cls, given: Descriptor, wanted: Descriptor) -> Primitive:
        """Copies memory to another layout."""
        library = dnnl()
        return cls(
            "dnnl_reorder_primitive_desc_create",
            *(given.handle, library.engine, wanted.handle, library.engine, library.attributes),
        )

    def __del__(self) -> None:
        self._library.handle.dnnl_primitive_destroy(self._handle)
        self._library.handle.dnnl_primitive_desc_destroy(self._description)

    @property
    def implementation(self) -> str:
        """oneDNN's name for its code."""
        name = ctypes.c_char_p()
        status = self._library.handle.dnnl_primitive_desc_query(
            self._description, Query.IMPL_INFO_STR, 0, ctypes.byref(name)
        )
        _check("dnnl_primitive_desc_query", status)
        return (name.value or b"").decode()

    def descriptor(self, argument: Arg) -> Descriptor:
        """How it wants an argument of its execution."""
        handle = self._library.query(self._description, Query.EXEC_ARG_MD, argument)
        return Descriptor(ctypes.c_void_p(handle), owner=self._description)

    def arranged(self, argument: Arg, array: Array, given: Descriptor) -> tuple[Array, Descriptor]:
        """A copy of an array in the layout in which it is read, and that layout.

        Args:
            given: the layout of the array.
        """
        layout = self.descriptor(argument).copy()  # the primitive may be gone before the copy
        memory = layout.memory()
        Primitive.reorder(given, layout).execute({Arg.SRC: array, Arg.DST: memory})
        return memory, layout

    def reads(self, weights: ArrangedWeights) -> bool:
        """Whether weights that another primitive has arranged are in the layouts of this one."""
        return all(
            self.descriptor(argument).is_same(layout)
            for argument, layout in weights.layouts.items()
        )

    def execute(self, arrays: Mapping[Arg, Array]) -> None:
        """Runs it once on the memory of arrays, each laid out as it wants it."""
        library = self._library
        arrays = {**arrays, Arg.SCRATCHPAD: self._scratchpad.memory()}
        arguments = c_array(ExecutionArgument, len(arrays))()
        try:
            for place, (argument, array) in zip(arguments, arrays.items(), strict=True):
                place.arg, place.memory = argument, self._memory(argument, array)
            status = library.handle.dnnl_primitive_execute(
                self._handle, library.stream, len(arguments), arguments
            )
            _check("dnnl_primitive_execute", status)
        finally:
            for place in arguments:
                library.handle.dnnl_memory_destroy(ctypes.c_void_p(place.memory))

    def _memory(self, argument: Arg, array: Array) -> int | None:
        memory = ctypes.c_void_p()
        status = self._library.handle.dnnl_memory_create(
            *(ctypes.byref(memory), self._described(argument).handle, self._library.engine),
            ctypes.c_void_p(address_of(array)),
        )
        _check("dnnl_memory_create", status)
        return memory.value

    def _described(self, argument: Arg) -> Descriptor:
        if argument not in self._descriptors:
            self._descriptors[argument] = self.descriptor(argument)
        return self._descriptors[argument]


class _Library:
    """oneDNN, with an engine, a stream and attributes that all primitives share."""

    def __init__(self) -> None:
        self.handle = load_library().handle
        self.sgemm = _function(
            *(self.handle, "dnnl_sgemm", ctypes.c_int, ctypes.c_char, ctypes.c_char),
            *(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_float),
            *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64),
            *(ctypes.c_float, ctypes.c_void_p, ctypes.c_int64),
        )
        self.size_of = _function(
            self.handle, "dnnl_memory_desc_get_size", ctypes.c_size_t, ctypes.c_void_p
        )
        self.query = _function(
            *(self.handle, "dnnl_primitive_desc_query_md", ctypes.c_void_p),
            *(ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
        )
        self.engine, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.attributes = ctypes.c_void_p()
        _check(
            "dnnl_engine_create",
            self.handle.dnnl_engine_create(ctypes.byref(self.engine), CPU, ctypes.c_size_t(0)),
        )
        _check(
            "dnnl_stream_create",
            self.handle.dnnl_stream_create(ctypes.byref(self.stream), self.engine, IN_ORDER),
        )
        _check(
            "dnnl_primitive_attr_create",
            self.handle.dnnl_primitive_attr_create(ctypes.byref(self.attributes)),
        )
        self.handle.dnnl_primitive_attr_set_scratchpad_mode(self.attributes, USER_SCRATCHPAD)


_first_use = ForkSafeLock()
"""Held while the library is made: primitives of one engine do not run on the stream of another."""


@cache
def dnnl() -> _Library:
    """The one that a process has."""
    with _first_use:
        return _only()


_only = cache(_Library)


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    """A function of its own type; that which is an attribute of the library is shared by all."""
    function = library[name]
    function.restype, function.argtypes = result, arguments
    return function


def _steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The elements between neighbours along each dimension of a contiguous array."""
    return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))


def c_numbers(values: tuple[int, ...] | list[int]) -> Any:
    """`dnnl_dims_t`."""
    return c_array(ctypes.c_int64, len(values))(*values)


def _check(function: str, status: int) -> None:
    if status != Status.SUCCESS:
        raise ExecutionError(f"oneDNN: {function} returned status {status}")
