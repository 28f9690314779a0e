"""Native code of a device in a program: the hooks that open it and upload the constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp, i32, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir import abi
from byoc_mlir.devices.chains import forget_recording
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder


def device_code(
    device: str, constants: Sequence[Weight], arena_bytes: int, recordings: Sequence[int] = ()
) -> ModuleOp:
    """Returns the hooks of a device in a program.

    The device's state has a slot for the address of each constant on the device, as many slots that
    are not 0 if the program owns that memory, and the addresses of the functions `message` and
    `identity`. `load` uploads the constants whose address is null: the runtime sets the addresses
    of those that another program has uploaded. `recordings` are the context slots of recordings,
    which `close` frees.
    """
    code = _DeviceCode(device, constants, arena_bytes, recordings)
    code.define_unload()
    code.define_upload()
    code.define_load()
    code.define_open()
    code.define_close()
    return code.builder.module


_SIGNATURES: Mapping[str, tuple[Sequence[Attribute], Attribute]] = {
    "message": ((i32,), POINTER),
    "identity": ((), POINTER),
    "open": ((POINTER,), i32),
    "close": ((POINTER,), VOID),
    "allocate": ((i64, POINTER), i32),
    "free": ((POINTER,), VOID),
    "copy_in": ((POINTER, POINTER, POINTER, i64), i32),
    "copy_out": ((POINTER, POINTER, POINTER, i64), i32),
    "wait": ((POINTER,), i32),
}
"""Parameters and result of each function of a device."""


class _DeviceCode:
    def __init__(
        self,
        device: str,
        constants: Sequence[Weight],
        arena_bytes: int,
        recordings: Sequence[int],
    ):
        self.builder = ModuleBuilder()
        self._device = device
        self._prefix = abi.device_region(device)
        self._constants = constants
        self._arena_bytes = arena_bytes
        self._recordings = recordings

    def define_load(self) -> None:
        """Defines `load(state)`, which leaves nothing behind if it fails."""
        function = self.builder.function(abi.LOAD.hook(self._prefix), (POINTER,))
        (state,) = function.parameters
        for number, name in enumerate(abi.DEVICE_FUNCTIONS, 2 * len(self._constants)):
            symbol = f"{self._device}_{name}"
            self.builder.declare(symbol, *_SIGNATURES[name])
            function.store(function.address(symbol), function.slot(state, number))
        if not self._constants:
            function.finish(function.integer(0, i32))
            return
        opened = function.stack_slot()
        function.check(self._call(function, "open", opened))
        queue = function.load(opened, POINTER)
        uploaded = function.call(self._upload, queue, state)
        waited = self._call(function, "wait", queue)
        failed = function.failed(uploaded)
        status = function.select(failed, uploaded, waited)
        self._do(function, "close", queue)
        is_failure = function.failed(status)
        function.when(is_failure, lambda: function.do(abi.UNLOAD.hook(self._prefix), state))
        function.finish(status)

    def define_upload(self) -> None:
        """Defines the function that enqueues the copies of the constants."""
        function = self.builder.function(self._upload, (POINTER, POINTER), internal=True)
        for index, weight in enumerate(self._constants):
            self._upload_one(function, index, weight)
        function.finish(function.integer(0, i32))

    @property
    def _upload(self) -> str:
        return f"{self._prefix}_upload"

    def _upload_one(self, function: FunctionBuilder, index: int, weight: Weight) -> None:
        queue, state = function.parameters
        slot, owned = self._slots(function, index)
        symbol = self.builder.external(abi.weight_symbol(weight.digest))
        size = function.integer(weight.data.nbytes)

        def upload() -> None:
            function.check(self._allocate(function, state, size, slot))
            function.store(function.integer(1), owned)
            memory = function.pointer(state, index)
            source = function.address(symbol)
            function.check(self._call(function, "copy_in", queue, memory, source, size))

        is_missing = function.compare("eq", function.pointer(state, index), function.null())
        function.when(is_missing, upload)

    def define_unload(self) -> None:
        """Defines `unload(state)`, which frees the memory that the program owns."""
        function = self.builder.function(abi.UNLOAD.hook(self._prefix), (POINTER,), result=VOID)
        for index in range(len(self._constants)):
            self._free_one(function, index)
        function.finish()

    def _free_one(self, function: FunctionBuilder, index: int) -> None:
        state = function.parameters[-1]
        slot, owned = self._slots(function, index)

        def free() -> None:
            self._do(function, "free", function.pointer(state, index))
            function.store(function.null(), slot)
            function.store(function.integer(0), owned)

        is_owned = function.compare("ne", function.load(owned), function.integer(0))
        function.when(is_owned, free)

    def _slots(self, function: FunctionBuilder, index: int) -> tuple[SSAValue, SSAValue]:
        """Returns the slots of a constant's address, and of its owner."""
        state = function.parameters[-1]
        return function.slot(state, index), function.slot(state, len(self._constants) + index)

    def define_open(self) -> None:
        """Defines `open(state, context, workspace)`, which makes a queue and the arena."""
        function = self.builder.function(abi.OPEN.hook(self._prefix), (POINTER,) * 3)
        state, context, _ = function.parameters
        opened = function.slot(context, abi.QUEUE_SLOT)
        function.check(self._call(function, "open", opened))
        if not self._arena_bytes:
            function.finish(function.integer(0, i32))
            return
        arena = function.slot(context, abi.DEVICE_ARENA_SLOT)
        status = self._allocate(function, state, function.integer(self._arena_bytes), arena)
        queue = function.load(opened, POINTER)
        failed = function.failed(status)
        function.when(failed, lambda: self._do(function, "close", queue))
        function.finish(status)

    def define_close(self) -> None:
        """Defines `close(state, context)`."""
        function = self.builder.function(abi.CLOSE.hook(self._prefix), (POINTER,) * 2, result=VOID)
        _, context = function.parameters
        for slot in self._recordings:
            forget_recording(function, self._device, function.slot(context, slot))
        if self._arena_bytes:
            self._do(function, "free", function.pointer(context, abi.DEVICE_ARENA_SLOT))
        self._do(function, "close", function.pointer(context, abi.QUEUE_SLOT))
        function.finish()

    def _allocate(
        self, function: FunctionBuilder, state: SSAValue, size: SSAValue, memory: SSAValue
    ) -> SSAValue:
        """Allocates memory; the state keeps the status, by which the runtime knows the failure."""
        status = self._call(function, "allocate", size, memory)
        slot = 2 * len(self._constants) + len(abi.DEVICE_FUNCTIONS)
        function.store(status, function.slot(state, slot))
        return status

    def _call(self, function: FunctionBuilder, name: str, *arguments: SSAValue) -> SSAValue:
        return function.call(f"{self._device}_{name}", *arguments)

    def _do(self, function: FunctionBuilder, name: str, *arguments: SSAValue) -> None:
        function.do(f"{self._device}_{name}", *arguments)
