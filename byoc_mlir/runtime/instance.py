"""Loaded program: linked code, shared state, and contexts leased to calls."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from byoc_mlir.abi import ENTRY_POINTS, FIND_PACKED, FOUND_SLOT, RUNTIME_FUNCTIONS, split_status
from byoc_mlir.boundary import value_refused
from byoc_mlir.dims import parse_size
from byoc_mlir.errors import ExecutionError
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.locks import ForkSafeLock
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.call import Call
from byoc_mlir.runtime.context import Context, new_outputs
from byoc_mlir.runtime.profiled import TimedPart
from byoc_mlir.runtime.program import Array, LoadedCode, Program, Step
from byoc_mlir.runtime.python_regions import Callbacks
from byoc_mlir.runtime.system.forks import on_live_threads
from byoc_mlir.runtime.system.libraries import load_own_library, load_shared_library, resolve_symbol
from byoc_mlir.runtime.system.memory import address_of, return_freed_memory


class Instance:
    """Program in the process; any number of threads may call `run`. Programs that use a device are
    a `DeviceInstance`.

    Args:
        program: the program to link and load.
        limits: limits of calls with dynamic shapes; the compiler checks those of static shapes.
        load: false to load the program at its first run.

    Raises:
        ExecutionError: a library or a symbol is missing, or a region cannot be loaded.
    """

    instances: weakref.WeakSet[Instance] = weakref.WeakSet()
    """All loaded programs."""

    def __init__(self, program: Program, limits: Limits = DEFAULT_LIMITS, *, load: bool = True):
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
        self._callbacks = Callbacks() if program.python_regions else None
        self._is_closed = False
        self._release: weakref.finalize[..., Any] | None = None
        self._copied_bytes = 0
        if load:
            self._load_program()

    def _load_program(self) -> None:
        self._link()
        self._use_live_threads()
        self.instances.add(self)

    def _link(self) -> None:
        """Links the code, and calls the hooks `load` of the regions."""
        program = self.program
        self._native = program.code.load(self._symbols(), program.threads)
        self._load, self._open, self._run, self._close, self._unload = self._functions()
        self._state = np.zeros(max(program.state_slots, 1), np.int64)
        self._state_address = int(self._state.ctypes.data)
        if FIND_PACKED in program.externals:
            from byoc_mlir.runtime.packed import counted_copies  # programs of oneDNN share copies

            with counted_copies() as bytes_of_copies:
                self._load_regions()
            self._copied_bytes = bytes_of_copies()
        else:
            self._load_regions()
        self._release = weakref.finalize(self, *self._releasing())
        self._release.atexit = False  # the process is going away with all it has

    def _load_regions(self) -> None:
        """Calls the hooks `load` of the regions."""
        status = self._load(self._state_address)
        if status:
            self._fail_to_load(status)

    def _releasing(self) -> tuple[Callable[..., None], *tuple[Any, ...]]:
        """Returns the function that frees what the program has, with its arguments; it must not
        refer to the instance.
        """
        return _release, self._native, self._close, self._unload, self._state, self._all

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

    def new_outputs(self, kinds: Mapping[str, tuple[Shape, np.dtype[Any]]]) -> dict[str, Array]:
        """Returns uninitialised arrays for outputs, by name.

        Raises:
            OutOfMemoryError: there is not enough memory for them.
        """
        return dict(zip(kinds, new_outputs(list(kinds.values())), strict=True))

    def placed(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Copies arrays for inputs to the memory in which the program takes them."""
        return dict(arrays)

    def handles(self, out: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the arrays that a caller gave for outputs, as `run` takes them."""
        return out

    @property
    def held_bytes(self) -> int:
        """Returns the bytes of the instance's code, arenas and copies of constants."""
        program = self.program
        return program.code.size + len(self._all) * program.arena_bytes + self._copied_bytes

    def close(self) -> None:
        """Frees contexts, primitives and code; no call may be running. The garbage collector does
        this, too.
        """
        with self._lock:
            self._is_closed = True
            self._free.clear()
            if self._release is not None:
                self._release()

    @classmethod
    def after_fork(cls) -> None:
        """Prepares all instances in a forked child."""
        for instance in cls.instances:
            instance._use_in_fork()

    def _use_in_fork(self) -> None:
        self._use_live_threads()

    def _fail_to_load(self, status: int) -> NoReturn:
        """Raises the error for a status of `byoc_load`, and frees the code."""
        try:
            self._check(status, "load")
        finally:
            self._native.close()
        raise AssertionError(f"load ended with status {status}")

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
            if self._is_closed:
                raise ExecutionError("the executable is closed; compile or load it again")
            if self._release is None:
                self._load_program()
            return self._idle() or self._opened()

    def _idle(self) -> Context | None:
        """Returns a context that no call uses, which it takes; `None` if there is none."""
        try:
            return self._free.pop()  # atomic, since calls take contexts without the lock
        except IndexError:
            return None

    def _opened(self) -> Context:
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
        symbols = {name: self._resolved(name, libraries) for name in program.externals}
        for item in program.library_symbols:
            symbols[item.symbol] = resolve_symbol(item.name, [load_own_library(item.library)])
        if self._callbacks is not None:
            for region in program.python_regions:
                symbols[region.symbol] = self._callbacks.address(region)
        return symbols

    def _resolved(self, name: str, libraries: Sequence[ctypes.CDLL]) -> int:
        if name not in RUNTIME_FUNCTIONS:
            return resolve_symbol(name, libraries)
        from byoc_mlir.runtime.packed import ADDRESSES  # programs of oneDNN share copies

        return ADDRESSES[name]

    def _check(self, status: int, what: str) -> None:
        if status == 0:
            return
        number, reason = split_status(status)
        region = self.program.regions[number - 1] if number else "the host function"
        self._fail_region(region, what, reason)

    def _fail_region(self, region: str, what: str, reason: int) -> NoReturn:
        """Raises the error for a status other than success of a region."""
        cause = None if self._callbacks is None else self._callbacks.take_error()
        detail = f": {cause}" if cause is not None else f" with status {reason}"
        nodes = ", ".join(row.node for row in self.program.report if row.region == region)
        of = f"; its nodes: {nodes}" if nodes else ""
        error = ExecutionError(f"could not {what}: region {region} failed{detail}{of}")
        error.locate("run", nodes or None)
        raise error from cause


def instance_of(
    program: Program, limits: Limits = DEFAULT_LIMITS, *, load: bool = True
) -> Instance:
    """Returns the loaded program; arguments and errors are those of `Instance`."""
    if not program.devices:
        return Instance(program, limits, load=load)
    from byoc_mlir.runtime.device_instance import device_instance  # few programs need it

    return device_instance(program, limits, load=load)


def _release(
    native: LoadedCode,
    close: Callable[..., int],
    unload: Callable[..., int],
    state: Array,
    contexts: list[Context],
) -> None:
    for context in contexts:
        close(int(state.ctypes.data), context.slots_address)
    unload(int(state.ctypes.data))
    contexts.clear()
    native.close()
    return_freed_memory()


os.register_at_fork(after_in_child=Instance.after_fork)
