"""Functions of the driver's API (`libcuda.so.1`), and code around their calls.

Code makes the GPU's primary context current for the thread while it calls the driver, and leaves
the context that the thread had before. Libraries of the toolkit use the primary context, too. The
status of a function that undoes another one is ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.runtime.program import SharedLibrary

ENVIRONMENT_VARIABLE = "BYOC_CUDA_LIBRARY"
"""Environment variable with the path of a driver's library to use instead of the system's."""

_NAME = "libcuda.so.1"

ORDINAL = 0
"""Number of the GPU; the driver numbers those that `CUDA_VISIBLE_DEVICES` names."""

NAME_BYTES = 256
"""Maximum size of a GPU's name."""

LIBRARY_STATUS = 1000
"""Lowest status of a library in generated code; those of the driver are lower."""

CAPABILITY = (75, 76)
"""Attributes of a GPU: major and minor number of its compute capability."""


def driver_library() -> SharedLibrary:
    """Returns the driver's library: the user's choice, or the one that the dynamic loader finds."""
    path = Path(os.environ.get(ENVIRONMENT_VARIABLE) or _NAME)
    return SharedLibrary(path, ENVIRONMENT_VARIABLE)


class DriverCode:
    """Builder of internal functions that several functions of a module call.

    Args:
        prefix: prefix of the functions' names, so that modules can be joined.
    """

    def __init__(self, module: ModuleBuilder, prefix: str):
        self.module = module
        self._prefix = prefix

    def enter(self, function: FunctionBuilder) -> SSAValue:
        """Calls the function that retains the primary context and makes it current; returns the
        status.
        """
        name = self._defined("enter", (), i32, _define_enter)
        return function.call(name)

    def leave(self, function: FunctionBuilder) -> None:
        """Calls the function that undoes `enter`."""
        self.pop(function)
        self.release(function)

    def enter_queue(self, function: FunctionBuilder, queue: SSAValue) -> SSAValue:
        """Calls the function that makes the context of a queue current; returns the status."""
        name = self._defined("enter_queue", (POINTER,), i32, _define_enter_queue)
        return function.call(name, queue)

    def pop(self, function: FunctionBuilder) -> None:
        """Calls the function that undoes `enter_queue`."""
        function.do(self._defined("pop", (), VOID, _define_pop))

    def release(self, function: FunctionBuilder) -> None:
        """Calls the function that releases the primary context once."""
        function.do(self._defined("release", (), VOID, _define_release))

    def finish_in(
        self, function: FunctionBuilder, queue: SSAValue, called: str, *operands: SSAValue
    ) -> None:
        """Ends a function with a call of another one in the context of a queue."""
        function.check(self.enter_queue(function, queue))
        status = function.call(called, *operands)
        self.pop(function)
        function.finish(status)

    def keep_if_zero(self, function: FunctionBuilder, status: SSAValue) -> None:
        """Ends a function that made something: unless it failed, the context stays retained."""
        self.pop(function)
        failed = function.failed(status)
        function.when(failed, lambda: self.release(function))
        function.finish(status)

    def finish_freeing(self, function: FunctionBuilder, free: Callable[[], object]) -> None:
        """Ends a function that frees an owner of the primary context, by the code of `free`."""
        self.enter(function)
        free()
        self.leave(function)
        self.release(function)
        function.finish()

    def _defined(
        self,
        name: str,
        parameters: tuple[Attribute, ...],
        result: Attribute,
        define: Callable[[FunctionBuilder], None],
    ) -> str:
        symbol = f"{self._prefix}_{name}"
        if not self.module.has(symbol):
            define(self.module.function(symbol, parameters, result=result, internal=True))
        return symbol


def _define_enter(function: FunctionBuilder) -> None:
    device, context = function.stack_slot(), function.stack_slot()
    function.check(function.call("cuInit", function.integer(0, i32)))
    function.check(function.call("cuDeviceGet", device, function.integer(ORDINAL, i32)))
    number = function.load(device, i32)
    function.check(function.call("cuDevicePrimaryCtxRetain", context, number))
    status = function.call("cuCtxPushCurrent_v2", function.load(context, POINTER))
    failed = function.failed(status)
    function.when(failed, lambda: function.call("cuDevicePrimaryCtxRelease_v2", number))
    function.finish(status)


def _define_release(function: FunctionBuilder) -> None:
    device = function.stack_slot()
    function.call("cuDeviceGet", device, function.integer(ORDINAL, i32))
    function.call("cuDevicePrimaryCtxRelease_v2", function.load(device, i32))
    function.finish()


def _define_enter_queue(function: FunctionBuilder) -> None:
    context = function.stack_slot()
    function.check(function.call("cuStreamGetCtx", function.parameters[0], context))
    function.finish(function.call("cuCtxPushCurrent_v2", function.load(context, POINTER)))


def _define_pop(function: FunctionBuilder) -> None:
    function.call("cuCtxPopCurrent_v2", function.stack_slot())
    function.finish()
