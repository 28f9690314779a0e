"""Loaded program: linked code, shared state, and contexts leased to calls."""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from byoc_mlir.abi import ARENA_ALIGNMENT, ENTRY_POINTS, FOUND_SLOT, split_status
from byoc_mlir.boundary import value_refused
from byoc_mlir.dims import parse_size
from byoc_mlir.errors import DeviceError, ExecutionError, OutOfMemoryError
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.runtime import devices, packed
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.call import Call
from byoc_mlir.runtime.module import RegionModule
from byoc_mlir.runtime.profiled import TimedPart
from byoc_mlir.runtime.program import (
    Array,
    LoadedCode,
    Program,
    ProgramDevice,
    PythonRegion,
    Step,
)
from byoc_mlir.runtime.system.addresses import address_of, array_at, c_array, function_address
from byoc_mlir.runtime.system.forks import ForkSafeLock, on_live_threads
from byoc_mlir.runtime.system.libraries import load_own_library, load_shared_library, resolve_symbol
from byoc_mlir.runtime.system.memory import return_freed_memory
from byoc_mlir.tensors import TensorInfo

_empty = np.empty  # found faster than an attribute

_RegionFunction = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


class Context:
    """Memory that each call needs: context slots, the arena, and a C array of pointers.

    `pointers` has the inputs' pointers, then the outputs'. If the program takes sizes, the pointer
    to the sizes comes first.
    """

    def __init__(self, program: Program, state_address: int):
        self.slots = np.zeros(max(program.context_slots, 1), np.int64)
        self.allocate(program.arena_bytes)
        self.slots_address = int(self.slots.ctypes.data)
        taken = len(program.inputs) + (program.sizes is not None)
        self.pointers = c_array(ctypes.c_void_p, taken + len(program.outputs) or 1)()
        inputs = ctypes.addressof(self.pointers)
        outputs = inputs + taken * ctypes.sizeof(ctypes.c_void_p)
        self.arguments = tuple(
            ctypes.c_void_p(address)  # converted once, not in every call
            for address in (state_address, self.slots_address, self.arena_address, inputs, outputs)
        )

    def allocate(self, size: int) -> None:
        """Allocates the arena with `size` bytes.

        Raises:
            OutOfMemoryError: there is not enough memory.
        """
        try:
            self._arena = np.empty(size + ARENA_ALIGNMENT, np.uint8)
        except (MemoryError, ValueError) as error:
            raise OutOfMemoryError(_no_memory("arena", size)) from error
        start = int(self._arena.ctypes.data)
        self.arena_address = start + -start % ARENA_ALIGNMENT
        self.arena_bytes = size

    def grow(self, size: int) -> None:
        """Replaces the arena by one with `size` bytes."""
        self.allocate(size)
        state, slots, _, inputs, outputs = self.arguments
        self.arguments = (state, slots, ctypes.c_void_p(self.arena_address), inputs, outputs)


class Instance:
    """Linked and loaded program; any number of threads may call `run`.

    Args:
        program: the program to load.
        limits: limits of calls with dynamic shapes; the compiler checks those of static shapes.

    Raises:
        ExecutionError: a library or a symbol is missing, or a region cannot be loaded.
    """

    _instances: weakref.WeakSet[Instance] = weakref.WeakSet()

    def __init__(self, program: Program, limits: Limits = DEFAULT_LIMITS):
        self.program = program
        self.output_names = [spec.name for spec in program.outputs]
        self._limits = limits
        self._output_sizes = [tuple(map(parse_size, spec.shape)) for spec in program.outputs]
        self.outputs: list[tuple[Shape, np.dtype[Any]]] = []
        """Shapes and types of the outputs, if no sizes are arguments."""
        if program.sizes is None:
            self.outputs = [(spec.static_shape, spec.dtype) for spec in program.outputs]
        self._lock = ForkSafeLock()
        self._free: list[Context] = []
        self._all: list[Context] = []
        self._errors = threading.local()
        self._modules: dict[tuple[str, bytes], RegionModule] = {}
        self._callbacks = [self._callback(region) for region in program.python_regions]
        self._native = program.code.load(self._symbols(), program.threads)
        self._load, self._open, self._run, self._close, self._unload = self._functions()
        self._state = np.zeros(max(program.state_slots, 1), np.int64)
        self._state_address = int(self._state.ctypes.data)
        with (
            packed.counted_copies() as bytes_of_copies,
            devices.uploads.loading(program.devices, self._state),
        ):
            status = self._load(self._state_address)
        if status:
            try:
                self._check(status, "load")
            finally:
                self._native.close()
        self._copied_bytes = bytes_of_copies()
        self._release = weakref.finalize(
            self,
            _release,
            program.devices,
            self._native,
            self._close,
            self._unload,
            self._state,
            self._all,
        )
        self._release.atexit = False  # the process is going away with all it has
        self._use_live_threads()
        self._instances.add(self)
        try:
            devices.check_identities(program.devices, self._state)
        except DeviceError:
            self.close()
            raise

    def call(self, sizes: Mapping[str, int]) -> Call:
        """Returns the memory requirements of a call for these sizes of the program's symbols.

        Raises:
            LimitExceededError: the call exceeds a limit.
        """
        return Call(self.program, self._output_sizes, sizes, self._limits)

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array] | None = None,
        call: Call | None = None,
        parts: list[TimedPart] | None = None,
    ) -> list[Array]:
        """Runs the model on contiguous arrays that fit `program.inputs`.

        Args:
            outputs: contiguous arrays that fit `program.outputs`; new ones by default.
            call: requirements for the sizes of the inputs, if the program takes sizes.
            parts: list to which the times of `program.steps` are added; by default, nothing is
                timed.

        Raises:
            ExecutionError: a native call failed.
            OutOfMemoryError: there is not enough memory for the outputs.
        """
        kinds = self.outputs if call is None else call.outputs
        outputs = new_outputs(kinds) if outputs is None else list(outputs)
        context = self._lease()
        try:
            pointers, index = context.pointers, 0
            if call is not None:
                if call.arena_bytes > context.arena_bytes:
                    context.grow(call.arena_bytes)
                pointers[0] = call.sizes_address
                index = 1
            for arrays in (inputs, outputs):
                for array in arrays:
                    pointers[index] = address_of(array)
                    index += 1
            if parts is None:
                self._run_in(context)
            else:
                steps = self.program.steps if call is None else call.steps
                parts.append(self._run_timed(context, steps))
        finally:
            self._free.append(context)
        return outputs

    def _run_timed(self, context: Context, steps: Sequence[Step]) -> TimedPart:
        """Runs the model on a context's pointers; returns the times in its last slots."""
        end = self.program.context_slots
        sums = context.slots[end - 2 * len(steps) : end]
        sums[:] = 0
        self._run_in(context)
        seconds: list[float] = (sums * 1e-9).tolist()
        count, threads = len(steps), self.program.threads
        return TimedPart(self.program.report, steps, seconds[:count], seconds[count:], threads)

    @property
    def held_bytes(self) -> int:
        """Returns the bytes of the instance's code, arenas and copies of constants."""
        arenas = len(self._all) * self.program.arena_bytes
        return self.program.code.size + arenas + self._copied_bytes

    @property
    def is_closed(self) -> bool:
        """True if `close` was called."""
        return not self._release.alive

    def close(self) -> None:
        """Frees contexts, primitives and code; no call may be running. The garbage collector does
        this, too.
        """
        with self._lock:
            self._free.clear()
            self._release()

    @classmethod
    def after_fork(cls) -> None:
        """Prepares all instances in a forked child."""
        for instance in cls._instances:
            if instance.program.devices:
                instance._open = instance._run = devices.refuse_fork
                instance._release.detach()
            else:
                instance._use_live_threads()

    def _use_live_threads(self) -> None:
        self._open, self._run = on_live_threads(self._open), on_live_threads(self._run)

    def _run_in(self, context: Context) -> None:
        """Runs the model on the pointers of a context."""
        status = self._run(*context.arguments)
        if status:
            self._fail(status, context)

    def _fail(self, status: int, context: Context) -> NoReturn:
        """Raises the error for a run that ended with a status other than success."""
        number, reason = split_status(status)
        if number or not 0 < reason <= len(self.program.checks):
            self._check(status, "run")
        check, found = self.program.checks[reason - 1], int(context.slots[FOUND_SLOT])
        raise value_refused(check.what, found, check.least, check.most, check.node)

    def _lease(self) -> Context:
        try:
            return self._free.pop()  # atomic, so no lock on the hot path
        except IndexError:
            return self._new_context()

    def _new_context(self) -> Context:
        with self._lock:
            if self.is_closed:
                raise ExecutionError("the executable is closed; compile or load it again")
            context = Context(self.program, self._state_address)
            status = self._open(self._state_address, context.slots_address, context.arena_address)
            self._check(status, "open a context")
            self._all.append(context)
            return context

    def _functions(self) -> tuple[Callable[..., int], ...]:
        pointer = ctypes.c_void_p
        return tuple(
            cast(
                Callable[..., int],
                ctypes.CFUNCTYPE(
                    ctypes.c_int64 if entry.returns_status else None,
                    *[pointer] * len(entry.parameters),
                )(self._native.address(entry.symbol)),
            )
            for entry in ENTRY_POINTS
        )

    def _symbols(self) -> dict[str, int]:
        program = self.program
        libraries = [load_shared_library(library) for library in program.libraries]
        symbols = {
            name: packed.ADDRESSES.get(name) or resolve_symbol(name, libraries)
            for name in program.externals
        }
        for item in program.library_symbols:
            symbols[item.symbol] = resolve_symbol(item.name, [load_own_library(item.library)])
        for region, callback in zip(program.python_regions, self._callbacks, strict=True):
            symbols[region.symbol] = function_address(callback)
        return symbols

    def _callback(self, region: PythonRegion) -> object:
        key = (region.loader, region.data)
        if key not in self._modules:
            self._modules[key] = _load_module(region)
        function = self._modules[key].get_function(region.region)

        def call(inputs: int, outputs: int) -> int:
            try:
                function(_views(region.inputs, inputs), _views(region.outputs, outputs))
            except Exception as error:  # it cannot cross native frames; `_check` raises it again
                self._errors.last = error
                return 1
            return 0

        return _RegionFunction(call)

    def _check(self, status: int, what: str) -> None:
        if status == 0:
            return
        number, reason = split_status(status)
        region = self.program.regions[number - 1] if number else "the host function"
        devices.raise_device_error(self.program.devices, region, what, reason, self._state)
        cause: Exception | None = getattr(self._errors, "last", None)
        self._errors.last = None
        detail = f": {cause}" if cause is not None else f" with status {reason}"
        raise ExecutionError(f"could not {what}: region {region} failed{detail}") from cause


def new_outputs(outputs: Sequence[tuple[Shape, np.dtype[Any]]]) -> list[Array]:
    """Returns uninitialised arrays of these shapes and types.

    Raises:
        OutOfMemoryError: there is not enough memory for them.
    """
    try:
        return [_empty(shape, dtype) for shape, dtype in outputs]
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than can be addressed
        size = sum(math.prod(shape) * dtype.itemsize for shape, dtype in outputs)
        raise OutOfMemoryError(_no_memory("outputs", size)) from error


def _no_memory(what: str, size: int) -> str:
    """Returns the error message for memory that a run could not allocate."""
    return f"run: there is no memory for the {what} of the model, {size:,} bytes"


def _release(
    used: Sequence[ProgramDevice],
    native: LoadedCode,
    close: Callable[..., int],
    unload: Callable[..., int],
    state: Array,
    contexts: list[Context],
) -> None:
    for context in contexts:
        close(int(state.ctypes.data), context.slots_address)
    devices.uploads.release(used, state)
    unload(int(state.ctypes.data))
    contexts.clear()
    native.close()
    return_freed_memory()


os.register_at_fork(after_in_child=Instance.after_fork)


def _load_module(region: PythonRegion) -> RegionModule:
    module_name, _, class_name = region.loader.partition(":")
    try:
        loader: object = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:  # no name of a module
        raise ExecutionError(
            f"region {region.region} needs the loader '{region.loader}', which cannot be"
            f" imported: {error}; install the backend's package"
        ) from error
    if not (isinstance(loader, type) and issubclass(loader, RegionModule)):
        raise ExecutionError(
            f"the loader '{region.loader}' of region {region.region} is no RegionModule;"
            " install the release of the backend's package that made the blob"
        )
    try:
        return loader.load(region.data)
    except Exception as error:  # third-party code, which may raise anything
        raise ExecutionError(
            f"region {region.region} cannot be loaded by '{region.loader}': {error}"
        ) from error


def _views(specs: Sequence[TensorInfo], addresses: int) -> list[Array]:
    """Returns arrays over the memory that a C array of pointers refers to."""
    pointers = c_array(ctypes.c_void_p, len(specs)).from_address(addresses) if specs else ()
    return [
        array_at(cast(int, pointer), spec.dtype, spec.static_shape)
        for spec, pointer in zip(specs, pointers, strict=True)
    ]
