"""Runs of a region of the backend `cuda` on the recording driver, without the compiler's part."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from helpers.cuda.emulation import emulated_text, recording_driver
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from byoc_mlir.abi import COMPILER
from byoc_mlir.backends.base import NativeCode
from byoc_mlir.backends.cuda.device_code import device_module
from byoc_mlir.backends.cuda.kernels.compile import RegionKernels, compile_region
from byoc_mlir.backends.cuda.region_code import region_code
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.lowering.llvm_ir.codegen import emit_object
from byoc_mlir.runtime.linking.native_module import NativeModule

Array = npt.NDArray[Any]

_DEVICE = (
    "open",
    "close",
    "allocate",
    "free",
    "copy_in",
    "copy_out",
    "wait",
    "message",
    "identity",
)
_WITHOUT_STATUS = ("close", "free", "unload")


class DeviceError(Exception):
    """A function of the device or the region returned a status."""


def as_region(function: FuncOp) -> FuncOp:
    """Returns a copy of a function as a region of the backend."""
    region = function.clone()
    region.sym_name = StringAttr("region")
    region.attributes[COMPILER] = StringAttr("cuda")
    return region


class RegionRun:
    """A loaded region, with a queue and a context."""

    def __init__(self, function: FuncOp):
        region = as_region(function)
        terminator = region.body.block.last_op
        assert terminator is not None
        self._outputs = list(terminator.operands)
        tensors = len(region.args) + len(self._outputs)
        self.kernels: RegionKernels = compile_region(region)
        image = emulated_text(self.kernels.module).encode() + b"\0"
        self.code: NativeCode = region_code("region", self.kernels, image, tensors)
        hooks = ("load", "open", "unload", "start")
        self._module = _linked(self.code.module, [f"region_{hook}" for hook in hooks])
        self._state = (ctypes.c_void_p * self.code.state_slots)()
        self._context = (ctypes.c_void_p * self.code.context_slots)()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Returns the outputs of one run, with everything opened before and closed after."""
        queue = ctypes.c_void_p()
        self.call("cuda_open", ctypes.byref(queue))
        try:
            self.call("region_load", self._state)
            try:
                return self._opened(queue, inputs)
            finally:
                self.call("region_unload", self._state)
        finally:
            self.call("cuda_close", queue)

    def _opened(self, queue: ctypes.c_void_p, inputs: Sequence[Array]) -> list[Array]:
        given = [*(weight.data for weight in self.code.constants), *inputs]
        given = [np.ascontiguousarray(array) for array in given]
        results = [
            np.empty(shape_of(value), numpy_dtype(tensor_type(value).element_type))
            for value in self._outputs
        ]
        held: list[ctypes.c_void_p] = []
        try:
            workspace = self._allocate(held, self.code.workspace_bytes)
            self.call("region_open", self._state, self._context, workspace)
            addresses = [self._allocate(held, array.nbytes) for array in (*given, *results)]
            for array, address in zip(given, addresses, strict=False):
                if array.nbytes:
                    self.call("cuda_copy_in", queue, address, _pointer(array), _size(array))
            self.call("region_start", self._state, self._context, queue, *addresses)
            for array, address in zip(results, addresses[len(given) :], strict=True):
                if array.nbytes:
                    self.call("cuda_copy_out", queue, _pointer(array), address, _size(array))
            self.call("cuda_wait", queue)
        finally:
            for address in held:
                self.call("cuda_free", address)
        return results

    def _allocate(self, held: list[ctypes.c_void_p], size: int) -> ctypes.c_void_p:
        memory = ctypes.c_void_p()
        if size:
            self.call("cuda_allocate", ctypes.c_int64(size), ctypes.byref(memory))
            held.append(memory)
        return memory

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function of the device or the region.

        Raises:
            DeviceError: it returned a status.
        """
        has_status = not name.endswith(_WITHOUT_STATUS)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32 if has_status else None)
        module = _device() if name.startswith("cuda") else self._module
        status = prototype(module.address(name))(*arguments)
        if status:
            raise DeviceError(f"{name}: {self.message(status)} ({status})")

    def message(self, status: int) -> str:
        """Returns the device's text of a status."""
        prototype = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int32)
        return prototype(_device().address("cuda_message"))(status).decode()

    def identity(self) -> str:
        """Returns the device's text of the GPU."""
        prototype = ctypes.CFUNCTYPE(ctypes.c_char_p)
        return prototype(_device().address("cuda_identity"))().decode()


@cache
def _device() -> NativeModule:
    return _linked(device_module("cuda"), [f"cuda_{name}" for name in _DEVICE])


def _linked(module: ModuleOp, entry_points: Sequence[str]) -> NativeModule:
    """Links a module to the recording driver."""
    driver = ctypes.CDLL(str(recording_driver()))
    names = [op.sym_name.data for op in module.ops if isinstance(op, llvm.FuncOp)]
    externals = {
        name: ctypes.addressof(ctypes.c_char.in_dll(driver, name))
        for name in names
        if name.startswith("cu") and not name.startswith("cuda")
    }
    return NativeModule([emit_object(module)], entry_points, externals)


def _pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _size(array: Array) -> ctypes.c_int64:
    return ctypes.c_int64(array.nbytes)
