"""oneDNN engine of a process, with which all objects of the library are created."""

from __future__ import annotations

import ctypes
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias, cast

from byoc_mlir.errors import ExecutionError
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.onednn.constants import CPU, IN_ORDER, Status
from byoc_mlir.onednn.library import load_library
from byoc_mlir.runtime.system.memory import c_array

_VNNI_BITS = 0x48
"""Bits in `dnnl_cpu_isa_t`: one is set in `avx2_vnni` (0x0f), one in `avx512_core_vnni` (0x67)."""

_BF16_BIT = 0x80
"""Bit in `dnnl_cpu_isa_t`: set in `avx512_core_bf16` (0xe7) and all sets that contain it."""

_AMX_BIT = 0x200
"""Bit in `dnnl_cpu_isa_t`: set in `avx512_core_amx` (0xfef) and all sets that contain it."""

_AVX512_BIT = 0x20
"""Bit in `dnnl_cpu_isa_t`: set in `avx512_core` (0x27) and all sets that contain it."""


class Handle:
    """Object of the library, by its pointer."""

    handle: ctypes.c_void_p


class OwnedHandle(Handle):
    """Object of the library that is destroyed with this one."""

    _destroy: Any = None

    def _own(self, kind: str, handle: ctypes.c_void_p) -> None:
        self.handle, self._destroy = handle, engine().destructor(kind)

    def __del__(self) -> None:
        if self._destroy is not None:
            self._destroy(self.handle)


CType: TypeAlias = ctypes.c_int64 | ctypes.c_size_t | ctypes.c_void_p

Argument: TypeAlias = int | float | tuple[int, ...] | Sequence[Handle] | Handle | CType | None
"""Argument of a C function.

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
    """Engine of oneDNN for the processor, with a stream and functions of the library."""

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
        """True if the library generates AVX-512 code here; respects a limit on its instructions."""
        return bool(self._instructions & _AVX512_BIT)

    @property
    def has_bf16(self) -> bool:
        """True if the library has matmul instructions for `bf16`."""
        return bool(self._instructions & _BF16_BIT)

    @property
    def has_amx(self) -> bool:
        """True if the library has tile instructions for int8 and `bf16` matmuls."""
        return bool(self._instructions & _AMX_BIT)

    @property
    def has_vnni(self) -> bool:
        """True if the library has int8 GEMM without saturation in 16 bits."""
        return bool(self._instructions & _VNNI_BITS)

    @property
    def _instructions(self) -> int:
        return int(self.library.dnnl_get_effective_cpu_isa())

    @property
    def threads(self) -> int:
        """Returns the number of OpenMP threads that is set now, on this Python thread."""
        return int(self.library.omp_get_max_threads())

    def create(self, function: str, *arguments: Argument) -> ctypes.c_void_p:
        """Creates an object by a function that writes its pointer to its first parameter.

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
        """Returns the function that destroys objects of a kind, such as `memory_desc`."""
        return getattr(self.library, f"dnnl_{kind}_destroy")

    def _declared(self, name: str, result: Any, *arguments: Any) -> Any:
        """Returns a function with its own C types; attributes of `library` are shared."""
        function = self.library[name]
        function.restype, function.argtypes = result, arguments
        return function


_first_use = ForkSafeLock()
"""Lock for the creation of the engine; a primitive only runs on a stream of its own engine."""


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
    """Sets the number of OpenMP threads for calls inside, on this Python thread."""
    library = load_library().handle
    before = library.omp_get_max_threads()
    library.omp_set_num_threads(count)
    try:
        yield
    finally:
        library.omp_set_num_threads(before)


def check_status(function: str, status: int) -> None:
    """Raises the error for a status other than 0.

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
