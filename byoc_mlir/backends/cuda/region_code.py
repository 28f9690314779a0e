"""Native code of a region: it loads the kernels, and launches them on a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from byoc_mlir.abi import UNLOAD
from byoc_mlir.backends.base import NativeCode, OpDetail
from byoc_mlir.backends.cuda.kernels.compile import ArgumentAddress, Launch, RegionKernels, Space
from byoc_mlir.backends.cuda.kernels.map_to_grid import BLOCK_THREADS
from byoc_mlir.backends.inner_buffers import WORKSPACE_SLOT, define_open
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.nvidia.driver import DriverCode, driver_library
from byoc_mlir.nvidia.region_functions import define_load, define_start

_MODULE_SLOT, _FIRST_FUNCTION_SLOT = 0, 1
"""State slots: the loaded kernels, then each kernel's function."""

_CONTEXT_SLOTS = 1


def region_code(symbol: str, kernels: RegionKernels, image: bytes, tensors: int) -> NativeCode:
    """Returns the code of a region.

    Args:
        symbol: the region's symbol.
        kernels: its kernels.
        image: the kernels in a format that the driver loads.
        tensors: number of its inputs and outputs.
    """
    code = _LaunchCode(symbol, kernels, image)
    define_load(code.driver, symbol, code.define_find)
    define_open(code.module, symbol)
    code.define_unload()
    define_start(code.driver, symbol, 3 + len(kernels.constants) + tensors, code.define_launches)
    return NativeCode(
        code.module.module,
        state_slots=_FIRST_FUNCTION_SLOT + len(kernels.kernels),
        context_slots=_CONTEXT_SLOTS,
        workspace_bytes=kernels.workspace_bytes,
        constants=kernels.constants,
        libraries=(driver_library(),),
        details=tuple(OpDetail(launch.nodes, launch.kernel) for launch in kernels.launches),
    )


class _LaunchCode:
    def __init__(self, symbol: str, kernels: RegionKernels, image: bytes):
        self.module = ModuleBuilder()
        self._symbol, self._kernels, self._image = symbol, kernels, image
        self.driver = DriverCode(self.module, symbol)
        self._slots: Mapping[str, int] = {
            name: _FIRST_FUNCTION_SLOT + number for number, name in enumerate(kernels.kernels)
        }

    def define_find(self) -> str:
        """Defines the function that loads the kernels in the current context; returns its
        symbol.
        """
        name = f"{self._symbol}_find"
        image = self.module.data(f"{self._symbol}_image", self._image)
        function = self.module.function(name, (POINTER,), internal=True)
        (state,) = function.parameters
        slot = function.slot(state, _MODULE_SLOT)
        function.check(function.call("cuModuleLoadData", slot, function.address(image)))
        module = function.pointer(state, _MODULE_SLOT)
        status = function.integer(0, i32)
        for kernel, number in self._slots.items():
            text = self.module.text(f"{self._symbol}_name_{number}", kernel)
            target = function.slot(state, number)
            found = function.call("cuModuleGetFunction", target, module, function.address(text))
            is_first = function.compare("eq", status, function.integer(0, i32))
            status = function.select(is_first, found, status)
        failed = function.failed(status)
        function.when(failed, lambda: function.call("cuModuleUnload", module))
        function.finish(status)
        return name

    def define_unload(self) -> None:
        """Defines `R_unload(state)`."""
        function = self.module.function(UNLOAD.hook(self._symbol), (POINTER,), result=VOID)
        (state,) = function.parameters
        module = function.pointer(state, _MODULE_SLOT)
        self.driver.finish_freeing(function, lambda: function.call("cuModuleUnload", module))

    def define_launches(self, parameters: int) -> str:
        """Defines the function that launches the kernels in the current context; returns its
        symbol.
        """
        name = f"{self._symbol}_launches"
        function = self.module.function(name, (POINTER,) * parameters, internal=True)
        most = max((len(launch.arguments) for launch in self._kernels.launches), default=1)
        values = function.stack_slots(most)
        pointers = function.stack_array([function.slot(values, n) for n in range(most)])
        for launch in self._kernels.launches:
            self._launch(function, launch, values, pointers)
        function.finish(function.integer(0, i32))
        return name

    def _launch(
        self, function: FunctionBuilder, launch: Launch, values: SSAValue, pointers: SSAValue
    ) -> None:
        """Enqueues a kernel; the driver copies the arguments before it returns."""
        state, context, queue, *tensors = function.parameters
        for number, place in enumerate(launch.arguments):
            address = self._address(function, place, context, tensors)
            function.store(address, function.slot(values, number))
        one, zero = function.integer(1, i32), function.integer(0, i32)
        grid = (function.integer(-(-launch.threads // BLOCK_THREADS), i32), one, one)
        block = (function.integer(BLOCK_THREADS, i32), one, one)
        kernel = function.pointer(state, self._slots[launch.kernel])
        arguments = (*grid, *block, zero, queue, pointers, function.null())
        function.check(function.call("cuLaunchKernel", kernel, *arguments))

    def _address(
        self,
        function: FunctionBuilder,
        place: ArgumentAddress,
        context: SSAValue,
        tensors: Sequence[SSAValue],
    ) -> SSAValue:
        if place.space is Space.CONSTANT:
            return tensors[place.index]
        if place.space is Space.TENSOR:
            return tensors[len(self._kernels.constants) + place.index]
        base = function.pointer(context, WORKSPACE_SLOT)
        return function.offset(base, function.integer(place.index))
