"""Code of the device's functions, over the driver's API. A queue is a stream."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, i8, i32, i64
from xdsl.dialects.llvm import TruncOp
from xdsl.ir import SSAValue

from byoc_mlir.abi import SLOT_BYTES
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import CAPABILITY, LIBRARY_STATUS, NAME_BYTES, ORDINAL, DriverCode
from byoc_mlir.nvidia.libraries import EXPLAIN

_NON_BLOCKING = 1
"""Flag of streams that do not wait for the default stream."""

_OF_THREAD = 1
"""Mode of a capture during which other threads may call any function of the driver."""


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
    code.define_record_begin()
    code.define_record_end()
    code.define_replay()
    code.define_forget()
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
        self._driver.keep_if_zero(function, status)

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
        self._driver.keep_if_zero(function, function.call("cuMemAlloc_v2", memory, size))

    def define_free(self) -> None:
        """Defines `void free(memory)`."""
        function = self.module.function(f"{self._name}_free", (POINTER,), result=VOID)
        (memory,) = function.parameters
        self._driver.finish_freeing(function, lambda: function.call("cuMemFree_v2", memory))

    def define_copy(self, name: str, driver_function: str) -> None:
        """Defines `i32 name(queue, to, from, bytes)`, which enqueues a copy."""
        function = self.module.function(f"{self._name}_{name}", (POINTER, POINTER, POINTER, i64))
        queue, target, source, size = function.parameters
        self._driver.finish_in(function, queue, driver_function, target, source, size, queue)

    def define_wait(self) -> None:
        """Defines `i32 wait(queue)`."""
        function = self.module.function(f"{self._name}_wait", (POINTER,))
        (queue,) = function.parameters
        self._driver.finish_in(function, queue, "cuStreamSynchronize", queue)

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

    def define_record_begin(self) -> None:
        """Defines `i32 record_begin(queue)`."""
        function = self.module.function(f"{self._name}_record_begin", (POINTER,))
        (queue,) = function.parameters
        mode = function.integer(_OF_THREAD, i32)
        self._driver.finish_in(function, queue, "cuStreamBeginCapture_v2", queue, mode)

    def define_record_end(self) -> None:
        """Defines `i32 record_end(queue, recording*)`."""
        function = self.module.function(f"{self._name}_record_end", (POINTER, POINTER))
        queue, recording = function.parameters
        self._driver.finish_in(function, queue, self._define_finish(), queue, recording)

    def _define_finish(self) -> str:
        """Defines the function that ends a capture and makes a recording of the graph."""
        name = f"{self._name}_finish_recording"
        function = self.module.function(name, (POINTER, POINTER), internal=True)
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
        function = self.module.function(f"{self._name}_replay", (POINTER, POINTER))
        queue, recording = function.parameters
        self._driver.finish_in(function, queue, "cuGraphLaunch", recording, queue)

    def define_forget(self) -> None:
        """Defines `void forget(recording)`."""
        name = f"{self._name}_forget"
        function = self.module.function(name, (POINTER,), result=VOID)
        self._driver.enter(function)
        function.call("cuGraphExecDestroy", function.parameters[0])
        self._driver.leave(function)
        function.finish()

    @property
    def _library_text(self) -> str:
        return f"{self._name}_library_text"


_TEXT_BYTES = 2 * NAME_BYTES


def define_identity(module: ModuleBuilder, prefix: str) -> None:
    """Defines `ptr prefix_identity()`; the text is empty if there is no GPU."""
    code = _IdentityCode(module, prefix)
    code.define_append_number()
    code.define_write()
    text = module.variable(f"{prefix}_identity_text", _TEXT_BYTES)
    function = module.function(f"{prefix}_identity", (), result=POINTER)
    address = function.address(text)
    status = function.call(code.write, address)
    failed = function.failed(status)
    function.when(failed, lambda: function.store(function.integer(0, i8), address))
    function.finish(address)


class _IdentityCode:
    def __init__(self, module: ModuleBuilder, prefix: str):
        self._module = module
        self._prefix = prefix
        self._words = 0
        self.write, self._append_number = f"{prefix}_write_identity", f"{prefix}_append_number"

    def define_write(self) -> None:
        """Defines `i32 write(text)`."""
        function = self._module.function(self.write, (POINTER,), internal=True)
        (text,) = function.parameters
        device, number = function.stack_slot(), function.stack_slot()
        function.check(function.call("cuInit", function.integer(0, i32)))
        function.check(function.call("cuDeviceGet", device, function.integer(ORDINAL, i32)))
        gpu, size = function.load(device, i32), function.integer(NAME_BYTES, i32)
        function.check(function.call("cuDeviceGetName", text, size, gpu))
        for word, attribute in zip((", compute capability ", "."), CAPABILITY, strict=True):
            kind = function.integer(attribute, i32)
            function.check(function.call("cuDeviceGetAttribute", number, kind, gpu))
            self._append(function, word, function.sign_extend(function.load(number, i32)))
        function.check(function.call("cuDriverGetVersion", number))
        version = function.sign_extend(function.load(number, i32))
        major, rest = function.divmod(version, function.integer(1000))
        self._append(function, ", driver for CUDA ", major)
        self._append(function, ".", function.divide(rest, 10))
        function.finish(function.integer(0, i32))

    def _append(self, function: FunctionBuilder, word: str, number: SSAValue) -> None:
        """Appends a word and a number below 100 to the text."""
        (text,) = function.parameters
        self._words += 1
        known = self._module.text(f"{self._prefix}_word_{self._words}", word)
        function.call("strcat", text, function.address(known), result=POINTER)
        function.do(self._append_number, text, number)

    def define_append_number(self) -> None:
        """Defines `void append_number(text, number)` for numbers below 100."""
        name, parameters = self._append_number, (POINTER, i64)
        function = self._module.function(name, parameters, result=VOID, internal=True)
        text, number = function.parameters
        tens, ones = function.divmod(number, function.integer(10))
        digits = function.stack_slot()
        has_tens = function.compare("ne", tens, function.integer(0))
        start = function.select(has_tens, function.integer(1), function.integer(0))
        function.store(self._digit(function, tens), digits)
        function.store(self._digit(function, ones), function.offset(digits, start))
        function.call("strcat", text, digits, result=POINTER)
        function.finish()

    def _digit(self, function: FunctionBuilder, number: SSAValue) -> SSAValue:
        return function.insert(TruncOp(function.add(number, ord("0")), i8))
