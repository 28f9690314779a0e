"""The engine of a process: what all objects of oneDNN are created with."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias, cast

from byoc_mlir.errors import ExecutionError
from byoc_mlir.onednn.constants import CPU, IN_ORDER, Status
from byoc_mlir.onednn.library import load_library
from byoc_mlir.runtime.system.addresses import c_array
from byoc_mlir.runtime.system.forks import ForkSafeLock

_VNNI_BITS = 0x48
"""In `dnnl_cpu_isa_t`: one is set in `avx2_vnni` (0x0f), the other in `avx512_core_vnni` (0x67)."""

_BF16_BIT = 0x80
"""In `dnnl_cpu_isa_t`: set in `avx512_core_bf16` (0xe7) and all that contain it."""

_AMX_BIT = 0x200
"""In `dnnl_cpu_isa_t`: set in `avx512_core_amx` (0xfef) and all that contain it."""

_AVX512_BIT = 0x20
"""In `dnnl_cpu_isa_t`: set in `avx512_core` (0x27) and all that contain it."""


class Handle:
    """An object of the library, by its pointer."""

    handle: ctypes.c_void_p


class OwnedHandle(Handle):
    """An object of the library that is destroyed with this one."""

    _destroy: Any = None

    def _own(self, kind: str, handle: ctypes.c_void_p) -> None:
        self.handle, self._destroy = handle, engine().destructor(kind)

    def __del__(self) -> None:
        if self._destroy is not None:
            self._destroy(self.handle)


CType: TypeAlias = ctypes.c_int64 | ctypes.c_size_t | ctypes.c_void_p

Argument: TypeAlias = int | float | tuple[int, ...] | Sequence[Handle] | Handle | CType | None
"""An argument of a C function.

| value | C |
| --- | --- |
| `int` | `int`, an enum or flags |
| `float` | `float` |
| `tuple` of `int` | `const dnnl_dims_t` |
| a handle | its pointer |
| a `list` of handles | an array of their pointers |
| `None` | `NULL` |
| a value of `ctypes` | itself |
"""


class Engine(Handle):
    """oneDNN's engine for the processor, with a stream and the functions of the library."""

    def __init__(self) -> None:
        self.library = load_library().handle
        self.handle = self.create("dnnl_engine_create", CPU, ctypes.c_size_t(0))
        self.stream = self.create("dnnl_stream_create", self, IN_ORDER)
        self.sgemm = self._declared(
            *("dnnl_sgemm", ctypes.c_int, ctypes.c_char, ctypes.c_char),
            *(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_float),
            *(ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64),
            *(ctypes.c_float, ctypes.c_void_p, ctypes.c_int64),
        )
        self.size_of = self._declared("dnnl_memory_desc_get_size", ctypes.c_size_t, ctypes.c_void_p)
        self.query_descriptor = self._declared(
            *("dnnl_primitive_desc_query_md", ctypes.c_void_p),
            *(ctypes.c_void_p, ctypes.c_int, ctypes.c_int),
        )

    @property
    def has_avx512(self) -> bool:
        """True if the library generates AVX-512 code here, a cap on its instructions included."""
        return bool(self._instructions & _AVX512_BIT)

    @property
    def has_bf16(self) -> bool:
        """True if the library multiplies `bf16` by instructions for it."""
        return bool(self._instructions & _BF16_BIT)

    @property
    def has_amx(self) -> bool:
        """True if the library multiplies tiles, of bytes and of `bf16`."""
        return bool(self._instructions & _AMX_BIT)

    @property
    def has_vnni(self) -> bool:
        """True if the library multiplies bytes without saturating in 16 bits."""
        return bool(self._instructions & _VNNI_BITS)

    @property
    def _instructions(self) -> int:
        return int(self.library.dnnl_get_effective_cpu_isa())

    @property
    def threads(self) -> int:
        """The OpenMP threads that are set now, on this Python thread."""
        return int(self.library.omp_get_max_threads())

    def create(self, function: str, *arguments: Argument) -> ctypes.c_void_p:
        """Creates an object by a function whose first parameter is where its pointer goes.

        Raises:
            ExecutionError: the library refuses.
        """
        handle = ctypes.c_void_p()
        status = getattr(self.library, function)(ctypes.byref(handle), *map(_in_c, arguments))
        check_status(function, status)
        return handle

    def call(self, function: str, *arguments: Argument) -> None:
        """Calls a function that returns a status.

        Raises:
            ExecutionError: the library refuses.
        """
        check_status(function, getattr(self.library, function)(*map(_in_c, arguments)))

    def destructor(self, kind: str) -> Any:
        """Returns the function that destroys objects of a kind: `memory_desc`."""
        return getattr(self.library, f"dnnl_{kind}_destroy")

    def _declared(self, name: str, result: Any, *arguments: Any) -> Any:
        """Returns a function with types of its own: an attribute of the library is shared by all
        that loaded it.
        """
        function = self.library[name]
        function.restype, function.argtypes = result, arguments
        return function


_first_use = ForkSafeLock()
"""Held while the engine is made: primitives of one engine do not run on the stream of another."""


@cache
def engine() -> Engine:
    """Returns the one engine of this process.

    Raises:
        BackendError: there is no usable oneDNN.
    """
    with _first_use:
        return _only()


_only = cache(Engine)


@contextmanager
def openmp_threads(count: int) -> Generator[None]:
    """Sets the number of OpenMP threads that calls inside, on this Python thread, run on."""
    library = load_library().handle
    before = library.omp_get_max_threads()
    library.omp_set_num_threads(count)
    try:
        yield
    finally:
        library.omp_set_num_threads(before)


def check_status(function: str, status: int) -> None:
    """Raises what a status other than 0 means.

    Raises:
        ExecutionError: the function failed.
    """
    if status != Status.SUCCESS:
        raise ExecutionError(f"oneDNN: {function} returned status {status}")


def _in_c(argument: Argument) -> Any:
    if isinstance(argument, Handle):
        return argument.handle
    if isinstance(argument, tuple):
        return c_array(ctypes.c_int64, len(argument))(*argument)
    if isinstance(argument, list):
        pointers = [one.handle.value for one in argument]
        return c_array(ctypes.c_void_p, len(pointers))(*pointers)
    if isinstance(argument, float):
        return ctypes.c_float(argument)
    if isinstance(argument, int):
        return ctypes.c_int(argument)
    return cast(Any, argument)
