"""Code of the device's functions that record work as a CUDA graph, and replay it."""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64

from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import DriverCode

_OF_THREAD = 1
"""Mode of a capture during which other threads may call any function of the driver."""


def define_recording(module: ModuleBuilder, prefix: str) -> None:
    """Defines `record_begin`, `record_end`, `replay` and `forget`."""
    code = _RecordingCode(module, prefix)
    code.define_begin()
    code.define_end()
    code.define_replay()
    code.define_forget()


class _RecordingCode:
    def __init__(self, module: ModuleBuilder, prefix: str):
        self._module = module
        self._prefix = prefix
        self._driver = DriverCode(module, f"{prefix}_device")

    def define_begin(self) -> None:
        """Defines `i32 record_begin(queue)`."""
        function = self._module.function(f"{self._prefix}_record_begin", (POINTER,))
        (queue,) = function.parameters
        function.check(self._driver.enter_queue(function, queue))
        mode = function.integer(_OF_THREAD, i32)
        status = function.call("cuStreamBeginCapture_v2", queue, mode)
        self._driver.pop(function)
        function.finish(status)

    def define_end(self) -> None:
        """Defines `i32 record_end(queue, recording*)`."""
        function = self._module.function(f"{self._prefix}_record_end", (POINTER, POINTER))
        queue, recording = function.parameters
        function.check(self._driver.enter_queue(function, queue))
        status = function.call(self._define_finish(), queue, recording)
        self._driver.pop(function)
        function.finish(status)

    def _define_finish(self) -> str:
        """Defines the function that ends a capture and makes a recording of the graph."""
        name = f"{self._prefix}_finish_recording"
        function = self._module.function(name, (POINTER, POINTER), internal=True)
        queue, recording = function.parameters
        captured = function.stack_slot()
        function.check(function.call("cuStreamEndCapture", queue, captured))
        graph, flags = function.load(captured, POINTER), function.integer(0, i64)
        status = function.call("cuGraphInstantiateWithFlags", recording, graph, flags)
        function.call("cuGraphDestroy", graph)
        failed = function.failed(status)
        function.when(failed, lambda: function.store(function.null(), recording))
        function.finish(status)
        return name

    def define_replay(self) -> None:
        """Defines `i32 replay(queue, recording)`."""
        function = self._module.function(f"{self._prefix}_replay", (POINTER, POINTER))
        queue, recording = function.parameters
        function.check(self._driver.enter_queue(function, queue))
        status = function.call("cuGraphLaunch", recording, queue)
        self._driver.pop(function)
        function.finish(status)

    def define_forget(self) -> None:
        """Defines `void forget(recording)`."""
        name = f"{self._prefix}_forget"
        function = self._module.function(name, (POINTER,), result=VOID)
        self._driver.enter(function)
        function.call("cuGraphExecDestroy", function.parameters[0])
        self._driver.leave(function)
        function.finish()
