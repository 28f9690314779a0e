"""Takes weights out of the caches, so that what reads them next has them from memory."""

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
"""By architecture, what takes the line at an address out of all caches."""


def eviction_code(weight_bytes: int) -> KernelCode:
    """What takes the weights of a kernel, so many bytes, out of all caches; it is called with that
    kernel's slots. On an architecture that has nothing for that, they stay.
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
