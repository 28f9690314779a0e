"""Calls of functions that are written in the `llvm` dialect, from a `host.kernel`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.dialects import llvm, memref
from xdsl.dialects.builtin import UnrealizedConversionCastOp, i64
from xdsl.ir import SSAValue

from byoc_mlir.dims import Dim
from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.convolution import KernelCode, Slot
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Kernel
from byoc_mlir.tensors import Array


def known_words(code: KernelCode) -> Array:
    """Returns the 64-bit run-time parameters of the code as a constant, with zeros for symbolic
    ones.
    """
    return np.array([0 if isinstance(word, Dim) else word for word in code.words], np.int64)


def add_call(
    k: Kernel, module: ModuleBuilder, code: KernelCode, known: Buffer, given: Mapping[Slot, Buffer]
) -> None:
    """Appends a call of a kernel's code to a `host.kernel`.

    Args:
        module: module to which the code is added, unless it has it already.
        known: constant with the code's parameters.
        given: memory for the other slots that the code uses.
    """
    held = {**given, Slot.PARAMETERS: _parameters(k, known, code)}
    pointers = [_pointer(k, held.get(slot)) for slot in Slot]
    k.add(llvm.CallOp(_define_call(module, code), *pointers))


def _parameters(k: Kernel, known: Buffer, code: KernelCode) -> Buffer:
    """Returns the buffer with the code's parameters; for symbolic sizes, a copy that the run
    completes.
    """
    sizes = {place: word for place, word in enumerate(code.words) if isinstance(word, Dim)}
    if not sizes:
        return known
    parameters = k.stack(len(code.words), i64)
    k.add(memref.CopyOp(known.memref, parameters.memref))
    for place, size in sizes.items():
        parameters[place] = size
    return parameters


def _pointer(k: Kernel, buffer: Buffer | None) -> SSAValue:
    if buffer is None:
        return k.emit(llvm.ZeroOp(result_types=[POINTER]))
    return k.emit(UnrealizedConversionCastOp.get([buffer.memref], [POINTER]))


def _define_call(module: ModuleBuilder, code: KernelCode) -> str:
    """Defines `void (workspace, …)`, which calls the code with one pointer for each slot."""
    kernel = code.define(module)
    name = f"{kernel}_of_buffers"
    if module.has(name):
        return name
    function = module.function(name, [POINTER] * len(Slot), result=VOID, internal=True)
    slots = function.stack_slots(len(Slot))
    for slot, pointer in zip(Slot, function.parameters, strict=True):
        function.store(pointer, function.slot(slots, slot))
    function.do(kernel, slots)
    function.finish()
    return name
