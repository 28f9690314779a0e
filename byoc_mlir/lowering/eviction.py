"""Evicts weights from the caches, so that the next kernel reads them from memory."""

from __future__ import annotations

from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i8
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.convolution import KernelCode, Slot
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.runtime.system.cpu import Cpu

_NAME = "byoc_evict_weights"

_LINE_BYTES = 64

_INTRINSICS = {"x86_64": "llvm.x86.sse2.clflush"}
"""Intrinsic that evicts a cache line from all caches, by architecture."""


def eviction_code(weight_bytes: int) -> KernelCode:
    """Returns code that evicts `weight_bytes` bytes of a kernel's weights from all caches.

    It is called with the kernel's slots. On an architecture without such an instruction, it does
    nothing.
    """
    return KernelCode(partial(_define_eviction, lines=-(-weight_bytes // _LINE_BYTES)), ())


def _define_eviction(module: ModuleBuilder, lines: int) -> str:
    intrinsic = _INTRINSICS.get(Cpu.machine().architecture, "")
    function = module.function(_NAME, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    weights = function.pointer(slots, Slot.WEIGHTS)

    def evict(line: SSAValue) -> None:
        address = function.gep(weights, function.multiply(line, _LINE_BYTES), i8)
        function.append(llvm.CallIntrinsicOp(intrinsic, [address], []))

    function.loop(function.integer(lines if intrinsic else 0), evict)
    function.finish()
    return _NAME
