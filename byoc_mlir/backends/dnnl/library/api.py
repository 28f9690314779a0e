"""oneDNN at compile time: which implementation a call gets, what it needs, how long it takes."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byoc_mlir.backends.dnnl.library.calls import (
    NULL,
    Argument,
    Attributes,
    Descriptors,
    MemoryDescriptor,
    PrimitiveCall,
    Size,
    Special,
)
from byoc_mlir.backends.dnnl.library.formats import descriptor_strides, format_tag
from byoc_mlir.backends.dnnl.library.timing import shortest_run
from byoc_mlir.backends.onednn import ExecutionArgument, load_library
from byoc_mlir.backends.onednn_types import (
    CPU,
    IN_ORDER,
    USER_SCRATCHPAD,
    Arg,
    Query,
    Status,
)
from byoc_mlir.errors import CompilationError
from byoc_mlir.runtime.system.addresses import c_array
from byoc_mlir.runtime.system.forks import ForkSafeLock
from byoc_mlir.runtime.system.signals import signals_held
from byoc_mlir.runtime.system.thread_clock import thread_clock

_ALIGNMENT = 64


class PrimitiveDescriptor:
    """What oneDNN chose for a call. Lives as long as the process' `Api` or until collected."""

    def __init__(self, api: Api, handle: int):
        self._api, self.handle = api, handle

    def __del__(self) -> None:
        self._api.library.dnnl_primitive_desc_destroy(ctypes.c_void_p(self.handle))

    @property
    def implementation(self) -> str:
        """The library's name for it: `jit:avx2`."""
        name = ctypes.c_char_p()
        self._api.library.dnnl_primitive_desc_query(
            ctypes.c_void_p(self.handle), Query.IMPL_INFO_STR, 0, ctypes.byref(name)
        )
        return (name.value or b"unknown").decode()

    @property
    def scratchpad_bytes(self) -> int:
        """The memory that an execution needs beside its arguments."""
        return self.byte_size(Query.SCRATCHPAD_MD, 0)

    def byte_size(self, what: Query, index: int) -> int:
        """The memory behind one of its descriptors."""
        return int(self._api.library.dnnl_memory_desc_get_size(self._query(what, index)))

    def wants(self, argument: int, descriptor: MemoryDescriptor) -> bool:
        """Whether that argument is described by exactly this descriptor."""
        mine, other = self.argument_descriptor(argument), self._api.descriptor(descriptor)
        return bool(self._api.library.dnnl_memory_desc_equal(mine, other))

    def same(self, argument: int, other: PrimitiveDescriptor) -> bool:
        """Whether that argument of both has one descriptor."""
        mine, theirs = self.argument_descriptor(argument), other.argument_descriptor(argument)
        return bool(self._api.library.dnnl_memory_desc_equal(mine, theirs))

    def argument_descriptor(self, argument: int) -> ctypes.c_void_p:
        """The descriptor of an execution argument."""
        return self._query(Query.EXEC_ARG_MD, argument)

    def _query(self, what: Query, index: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(
            self._api.library.dnnl_primitive_desc_query_md(
                ctypes.c_void_p(self.handle), what, index
            )
        )


_VNNI_BITS = 0x48
"""In `dnnl_cpu_isa_t`: one is set in `avx2_vnni` (0x0f), the other in `avx512_core_vnni` (0x67)."""

_BF16_BIT = 0x80
"""In `dnnl_cpu_isa_t`: set in `avx512_core_bf16` (0xe7) and all that contain it."""

_AMX_BIT = 0x200
"""In `dnnl_cpu_isa_t`: set in `avx512_core_amx` (0xfef) and all that contain it."""

_AVX512_BIT = 0x20
"""In `dnnl_cpu_isa_t`: set in `avx512_core` (0x27) and all that contain it."""

_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2
"""Its multiples fall evenly between whole numbers: noise without the import of `numpy.random`."""


def _noise() -> NDArray[np.float32]:
    """Numbers between -1 and 1, both as `f32` and as twice as many `bf16`."""
    spread = np.arange(1, 1 + (1 << 14)) * _GOLDEN_RATIO % 1.0
    bits = (2 * spread - 1).astype(np.float32).view(np.uint32)
    return (bits & 0xFFFF0000 | bits >> 16).view(np.float32)


_NOISE = _noise()
"""What is computed with while measuring: some code is faster on zeros, or on one sign."""


def _no_noise() -> NDArray[np.float32]:
    return np.empty((0, _NOISE.size), np.float32)


class Api:
    """An engine and a stream, with the objects made for them."""

    def __init__(self) -> None:
        self.library = _declared(load_library().handle)
        self._engine, self._stream = ctypes.c_void_p(), ctypes.c_void_p()
        _check("dnnl_engine_create", self.library.dnnl_engine_create(self._engine_out, CPU, 0))
        _check(
            "dnnl_stream_create",
            self.library.dnnl_stream_create(ctypes.byref(self._stream), self._engine, IN_ORDER),
        )
        self._descriptors: dict[MemoryDescriptor, ctypes.c_void_p] = {}
        self._attributes: dict[Attributes, ctypes.c_void_p] = {}
        self._found: dict[tuple[PrimitiveCall, int], PrimitiveDescriptor | None] = {}
        self._buffer = _no_noise()
        self._measuring = ForkSafeLock()

    @property
    def _engine_out(self) -> Any:
        return ctypes.byref(self._engine)

    @property
    def has_avx512(self) -> bool:
        """Whether the library generates AVX-512 code here, a cap on its instructions included."""
        return bool(self.library.dnnl_get_effective_cpu_isa() & _AVX512_BIT)

    @property
    def has_bf16(self) -> bool:
        """Whether the library multiplies `bf16` by instructions for it."""
        return bool(self.library.dnnl_get_effective_cpu_isa() & _BF16_BIT)

    @property
    def has_amx(self) -> bool:
        """Whether the library multiplies tiles, of bytes and of `bf16`."""
        return bool(self.library.dnnl_get_effective_cpu_isa() & _AMX_BIT)

    @property
    def has_vnni(self) -> bool:
        """Whether the library multiplies bytes without saturating in 16 bits."""
        return bool(self.library.dnnl_get_effective_cpu_isa() & _VNNI_BITS)

    @property
    def threads(self) -> int:
        """The OpenMP threads that are set now, on this Python thread."""
        return int(self.library.omp_get_max_threads())

    @property
    def _clock(self) -> Callable[[], float]:
        """What a measurement reads: with one thread, the time that it had a core, so that waiting
        for one does not count.
        """
        return thread_clock() if self.threads == 1 else time.perf_counter

    def find(self, call: PrimitiveCall) -> PrimitiveDescriptor | None:
        """What oneDNN offers for a call with the threads that are set now; `None`: nothing."""
        key = (call, self.threads)
        if key in (found := self._found):  # another thread may put a new one in its place
            return found[key]
        found[key] = created = self._create(call)
        return created

    def release(self) -> None:
        """Lets go of the memory used for measuring, and of what `find` remembers."""
        self.release_memory()
        self._found = {}

    def release_memory(self) -> None:
        """Lets go of the memory used for measuring, which is as large as the largest weights."""
        with self._measuring:
            self._buffer = _no_noise()

    def _create(self, call: PrimitiveCall) -> PrimitiveDescriptor | None:
        handle = ctypes.c_void_p()
        arguments = [self._argument(argument) for argument in call.arguments]
        status = getattr(self.library, call.function)(ctypes.byref(handle), *arguments)
        if status != Status.SUCCESS or handle.value is None:
            return None
        return PrimitiveDescriptor(self, handle.value)

    def _argument(self, argument: Argument) -> Any:
        if argument is None or argument is NULL:
            return None
        if isinstance(argument, Special):
            return self._engine
        if isinstance(argument, MemoryDescriptor):
            return self.descriptor(argument)
        if isinstance(argument, Attributes):
            return self.attributes(argument)
        if isinstance(argument, Descriptors):
            handles = [self.descriptor(item).value for item in argument.items]
            return c_array(ctypes.c_void_p, len(handles))(*handles)
        if isinstance(argument, tuple):
            return c_array(ctypes.c_int64, len(argument))(*argument)
        if isinstance(argument, Size):
            return ctypes.c_int64(argument.value)
        if isinstance(argument, float):
            return ctypes.c_float(argument)
        return ctypes.c_int(argument)

    def descriptor(self, descriptor: MemoryDescriptor) -> ctypes.c_void_p:
        """The library's object for a memory descriptor."""
        if descriptor not in self._descriptors:
            self._descriptors[descriptor] = self._create_descriptor(descriptor)
        return self._descriptors[descriptor]

    def _create_descriptor(self, descriptor: MemoryDescriptor) -> ctypes.c_void_p:
        handle, rank = ctypes.c_void_p(), len(descriptor.dims)
        dims = c_array(ctypes.c_int64, rank)(*descriptor.dims)
        tag = format_tag(descriptor)
        if tag is None:
            strides = c_array(ctypes.c_int64, rank)(*descriptor_strides(descriptor))
            status = self.library.dnnl_memory_desc_create_with_strides(
                ctypes.byref(handle), rank, dims, descriptor.data_type, strides
            )
        else:
            status = self.library.dnnl_memory_desc_create_with_tag(
                ctypes.byref(handle), rank, dims, descriptor.data_type, tag
            )
        _check("dnnl_memory_desc_create", status)
        return handle

    def attributes(self, attributes: Attributes) -> ctypes.c_void_p:
        """The library's object for primitive attributes."""
        if attributes not in self._attributes:
            self._attributes[attributes] = self._create_attributes(attributes)
        return self._attributes[attributes]

    def _create_attributes(self, attributes: Attributes) -> ctypes.c_void_p:
        library, handle, chain = self.library, ctypes.c_void_p(), ctypes.c_void_p()
        library.dnnl_primitive_attr_create(ctypes.byref(handle))
        library.dnnl_primitive_attr_set_scratchpad_mode(handle, USER_SCRATCHPAD)
        for argument, mask in attributes.scales:
            library.dnnl_primitive_attr_set_scales_mask(handle, argument, mask)
        for argument, mask in attributes.zero_points:
            library.dnnl_primitive_attr_set_zero_points_mask(handle, argument, mask)
        library.dnnl_post_ops_create(ctypes.byref(chain))
        for post_op in attributes.post_ops:
            call = post_op.call
            getattr(library, call.function)(chain, *map(self._argument, call.arguments))
        library.dnnl_primitive_attr_set_post_ops(handle, chain)
        library.dnnl_post_ops_destroy(chain)
        return handle

    def measure(
        self,
        descriptor: PrimitiveDescriptor,
        arguments: tuple[int, ...],
        parameters: Mapping[int, MemoryDescriptor] | None = None,
        rival: float = math.inf,
    ) -> float:
        """The shortest of a few executions with these arguments, in milliseconds.

        Args:
            parameters: those of the arguments that the primitive descriptor does not describe.
            rival: milliseconds of what does the same; what is clearly slower runs less often.

        Raises:
            CompilationError: the library cannot create or run the primitive.
        """
        with self._measuring:  # one buffer is there for all, and a neighbour would be measured
            return self._measured(descriptor, arguments, parameters or {}, rival)

    def _measured(
        self,
        descriptor: PrimitiveDescriptor,
        arguments: tuple[int, ...],
        parameters: Mapping[int, MemoryDescriptor],
        rival: float,
    ) -> float:
        primitive = ctypes.c_void_p()
        handle = ctypes.c_void_p(descriptor.handle)
        _check(
            "dnnl_primitive_create",
            self.library.dnnl_primitive_create(ctypes.byref(primitive), handle),
        )
        described = {
            one: self.descriptor(parameters[one])
            if one in parameters
            else descriptor.argument_descriptor(one)
            for one in (*arguments, Arg.SCRATCHPAD)
        }
        memories = self._memories(described)
        pairs = (ExecutionArgument * len(memories))(*memories)

        def execute() -> None:
            status = self.library.dnnl_primitive_execute(
                primitive, self._stream, len(memories), pairs
            )
            _check("dnnl_primitive_execute", status)

        try:
            with signals_held():  # some code of the library has its stack elsewhere
                return 1e3 * shortest_run(execute, self._clock, rival / 1e3)
        finally:
            for pair in pairs:
                self.library.dnnl_memory_destroy(ctypes.c_void_p(pair.memory))
            self.library.dnnl_primitive_destroy(primitive)

    def _memories(self, described: Mapping[int, ctypes.c_void_p]) -> list[tuple[int, int | None]]:
        sizes = [
            -(-int(self.library.dnnl_memory_desc_get_size(one)) // _ALIGNMENT) * _ALIGNMENT
            for one in described.values()
        ]
        address = self._memory_of(sum(sizes))
        memories: list[tuple[int, int | None]] = []
        for (index, one), size in zip(described.items(), sizes, strict=True):
            memory = ctypes.c_void_p()
            status = self.library.dnnl_memory_create(
                ctypes.byref(memory), one, self._engine, ctypes.c_void_p(address)
            )
            _check("dnnl_memory_create", status)
            memories.append((index, memory.value))
            address += size
        return memories

    def _memory_of(self, size: int) -> int:
        needed = -(-(size + _ALIGNMENT) // _NOISE.nbytes)
        if len(self._buffer) < needed:
            self._buffer = np.empty((needed, _NOISE.size), np.float32)
        self._buffer[:needed] = _NOISE
        address = self._buffer.ctypes.data
        return -(-address // _ALIGNMENT) * _ALIGNMENT


_first_use = ForkSafeLock()
"""Held while the API is made: primitives of one engine do not run on the stream of another."""


@cache
def api() -> Api:
    """The one `Api` of the process.

    Raises:
        BackendError: there is no usable oneDNN.
    """
    with _first_use:
        return _only()


_only = cache(Api)


@contextmanager
def openmp_threads(count: int) -> Generator[None]:
    """Runs with that many OpenMP threads on this Python thread, as the compiled code will."""
    library = load_library().handle
    before = library.omp_get_max_threads()
    library.omp_set_num_threads(count)
    try:
        yield
    finally:
        library.omp_set_num_threads(before)


def _check(function: str, status: int) -> None:
    if status != Status.SUCCESS:
        raise CompilationError(f"oneDNN: {function} returned status {status}")


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    library.dnnl_memory_desc_get_size.restype = ctypes.c_size_t
    library.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p
    return library
