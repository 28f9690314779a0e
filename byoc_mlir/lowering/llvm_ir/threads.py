"""LLVM on several threads at once.

llvmlite holds one lock in each call. LLVM needs none for modules of different contexts with target
machines of their own, so the two calls that take long are made here without it. A fork waits for
them as it waits for that lock (`runtime/system/forks.py`).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar, cast

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from byoc_mlir.errors import CompilationError
from byoc_mlir.runtime.system.forks import llvm_at_work
from byoc_mlir.runtime.system.threads import available_threads, starts

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_OBJECT_FILE = 1
"""Asks for object code, not for assembly."""


def run_passes(
    passes: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder
) -> None:
    """Runs passes on a module that no other thread uses, inside of `at_once`."""
    _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)


def emit_unlocked(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    """Object code of a module that no other thread uses, as they do not use the target machine;
    inside of `at_once`.

    Raises:
        CompilationError: LLVM has no code for it.
    """
    library = cast(Any, ffi.lib)
    with ffi.OutputString() as error:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, _OBJECT_FILE, error)
        if not buffer:
            raise CompilationError(f"llvm-emit-object: {error}")
    try:
        size = library.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), size)
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


def at_once(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """The results of a function of each item, on as many threads as there are cores; this one is
    among them, and the others have its context. What one of them raises is raised."""
    results: dict[int, _Result] = {}
    errors: list[BaseException] = []
    numbers = iter(range(len(items)))

    def work() -> None:
        for number in numbers:  # the interpreter hands out each once
            try:
                results[number] = function(items[number])
            except BaseException as error:
                errors.append(error)
                return

    helpers = [
        threading.Thread(target=copy_context().run, args=(work,))
        for _ in range(1, min(available_threads(), len(items)))
    ]
    with llvm_at_work:
        started = [helper for helper in helpers if starts(helper)]
        work()
        for helper in started:
            helper.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]


@cache
def _unlocked(name: str) -> Any:
    """A function of LLVM as llvmlite declares it."""
    library = cast(Any, ffi.lib)
    declared = getattr(library, name)
    function = ctypes.CDLL(library._name, handle=library._handle)[name]
    function.argtypes, function.restype = declared.argtypes, declared.restype
    return function
