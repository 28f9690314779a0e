"""Code of the device's functions, over the driver's API. A queue is a stream."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.abi import SLOT_BYTES
from byoc_mlir.backends.cuda.identity_code import define_identity
from byoc_mlir.backends.cuda.recording_code import define_recording
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import LIBRARY_STATUS, DriverCode
from byoc_mlir.nvidia.libraries import EXPLAIN

_NON_BLOCKING = 1
"""Flag of streams that do not wait for the default stream."""


def device_module(name: str) -> ModuleOp:
    """Returns the module that defines a device's functions, with the prefix `name`."""
    code = _CudaCode(name)
    code.define_open()
    code.define_close()
    code.define_allocate()
    code.define_free()
    code.define_copy("copy_in", "cuMemcpyHtoDAsync_v2")
    code.define_copy("copy_out", "cuMemcpyDtoHAsync_v2")
    code.define_wait()
    code.define_explain()
    code.define_message()
    define_recording(code.module, name)
    define_identity(code.module, name)
    return code.module.module


class _CudaCode:
    def __init__(self, name: str):
        self.module = ModuleBuilder()
        self._name = name
        self._driver = DriverCode(self.module, f"{name}_device")

    def define_open(self) -> None:
        """Defines `i32 open(queue*)`; the queue keeps the primary context."""
        function = self.module.function(f"{self._name}_open", (POINTER,))
        (queue,) = function.parameters
        function.check(self._driver.enter(function))
        status = function.call("cuStreamCreate", queue, function.integer(_NON_BLOCKING, i32))
        self._keep_if_zero(function, status)

    def define_close(self) -> None:
        """Defines `void close(queue)`."""
        function = self.module.function(f"{self._name}_close", (POINTER,), result=VOID)
        (queue,) = function.parameters
        self._driver.enter_queue(function, queue)
        function.call("cuStreamDestroy_v2", queue)
        self._driver.leave(function)
        function.finish()

    def define_allocate(self) -> None:
        """Defines `i32 allocate(bytes, memory*)`; the memory keeps the primary context."""
        function = self.module.function(f"{self._name}_allocate", (i64, POINTER))
        size, memory = function.parameters
        function.check(self._driver.enter(function))
        self._keep_if_zero(function, function.call("cuMemAlloc_v2", memory, size))

    def define_free(self) -> None:
        """Defines `void free(memory)`."""
        function = self.module.function(f"{self._name}_free", (POINTER,), result=VOID)
        (memory,) = function.parameters
        self._driver.enter(function)
        function.call("cuMemFree_v2", memory)
        self._driver.leave(function)
        self._driver.release(function)
        function.finish()

    def define_copy(self, name: str, driver_function: str) -> None:
        """Defines `i32 name(queue, to, from, bytes)`, which enqueues a copy."""
        function = self.module.function(f"{self._name}_{name}", (POINTER, POINTER, POINTER, i64))
        queue, target, source, size = function.parameters
        function.check(self._driver.enter_queue(function, queue))
        status = function.call(driver_function, target, source, size, queue)
        self._driver.pop(function)
        function.finish(status)

    def define_wait(self) -> None:
        """Defines `i32 wait(queue)`."""
        function = self.module.function(f"{self._name}_wait", (POINTER,))
        (queue,) = function.parameters
        function.check(self._driver.enter_queue(function, queue))
        status = function.call("cuStreamSynchronize", queue)
        self._driver.pop(function)
        function.finish(status)

    def define_explain(self) -> None:
        """Defines `void explain(text)`, by which a library's text of its status gets to `message`.

        The last text is kept; two threads whose libraries fail at the same time may get one text.
        """
        self.module.variable(self._library_text, SLOT_BYTES)
        function = self.module.function(EXPLAIN, (POINTER,), result=VOID)
        function.store(function.parameters[0], function.address(self._library_text))
        function.finish()

    def define_message(self) -> None:
        """Defines `ptr message(status)`: the driver's text, that of a library for its statuses, or
        one of ours.
        """
        unknown = self.module.text(f"{self._name}_unknown_status", "a status unknown to the driver")
        function = self.module.function(f"{self._name}_message", (i32,), result=POINTER)
        (status,) = function.parameters
        text = function.stack_slot()
        failed = function.call("cuGetErrorString", status, text)
        is_known = function.compare("eq", failed, function.integer(0, i32))
        found = function.load(text, POINTER)
        others = function.select(is_known, found, function.address(unknown))
        explained = function.load(function.address(self._library_text), POINTER)
        is_library = function.compare("sge", status, function.integer(LIBRARY_STATUS, i32))
        has_text = function.compare("ne", explained, function.null())
        of_library = function.select(has_text, explained, others)
        function.finish(function.select(is_library, of_library, others))

    @property
    def _library_text(self) -> str:
        return f"{self._name}_library_text"

    def _keep_if_zero(self, function: FunctionBuilder, status: SSAValue) -> None:
        """Ends a function that made something: unless it failed, the context stays retained."""
        self._driver.pop(function)
        failed = function.failed(status)
        function.when(failed, lambda: self._driver.release(function))
        function.finish(status)
