"""Ops that built-in kernels compute instead of oneDNN's primitives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.codegen.own_arguments import read_addresses
from byoc_mlir.backends.dnnl.dialect.quantized import is_ours
from byoc_mlir.backends.dnnl.library.calls import element_bytes
from byoc_mlir.backends.dnnl.primitives.descriptions import Operand, Types
from byoc_mlir.backends.dnnl.primitives.normalizations import join_of
from byoc_mlir.backends.dnnl.primitives.own_conversions import interleaving
from byoc_mlir.backends.dnnl.primitives.own_kernels import planned, residual_of
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.errors import CompilationError
from byoc_mlir.kernels.activations import activation_code
from byoc_mlir.kernels.builder import POINTER
from byoc_mlir.kernels.convolution import ConvolutionKernel, KernelCode, Slot
from byoc_mlir.kernels.lookup import lookup_code
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.winograd.algorithm import ALGORITHMS
from byoc_mlir.onednn.constants import Arg
from byoc_mlir.runtime.system.cpu import Cpu

if TYPE_CHECKING:
    from byoc_mlir.backends.dnnl.primitives.own_integer_kernels import Kernel

_SLOTS = {Arg.SRC: Slot.SOURCE, Arg.DST: Slot.RESULT, Arg.BIAS: Slot.BIAS, Arg.SRC_1: Slot.RESIDUAL}
"""Kernel slots of the operands' addresses, by oneDNN's argument."""


@dataclass(frozen=True)
class Generated:
    """Function `i32 (arguments, table)`, and the words of its table."""

    add: Callable[[ModuleBuilder], str]
    """Function that adds the generated function to a module, unless the module has it, and returns
    its symbol."""
    words: tuple[int, ...]


@dataclass(frozen=True)
class OwnCode:
    """Built-in code of an op. Its arguments are the scratchpad, the weights, then the operands."""

    op: dnnl.ExecutedOp
    implementation: str
    """Name of the implementation in the report."""
    code: Generated
    operands: tuple[Operand, ...]
    scratchpad_bytes: int = 0
    packed: Callable[[], Weight] | None = None
    """Function that packs the weights; `None` without weights."""


def own_code(op: dnnl.ExecutedOp, threads: int) -> OwnCode | None:
    """Returns the built-in code of an op on `threads` threads.

    Returns `None` if a primitive computes the op.
    """
    if isinstance(op, dnnl.ActivationOp):
        return _activation(op)
    if isinstance(op, dnnl.LookupOp):
        return _lookup(op)
    if isinstance(op, dnnl.NormalizedConcatOp):
        return _normalized_concat(op)
    if isinstance(op, dnnl.QuantizedConvolutionOp) and is_ours(op):
        return _quantized_convolution(op, threads)
    if isinstance(op, dnnl.ConvertOp):
        return _conversion(op)
    kernel = planned(op, dnnl.layout_of) if isinstance(op, dnnl.ConvolutionOp) else None
    if kernel is None or not isinstance(op, dnnl.ConvolutionOp):
        return None
    return _convolution(op, kernel, threads)


def _activation(op: dnnl.ActivationOp) -> OwnCode:
    operand = Types(dnnl.layout_of).operand(Arg.DST, op.output)
    element = tensor_type(op.output).element_type
    size = element_bytes(operand.descriptor.data_type)
    elements = operand.descriptor.byte_size // size  # with padding, which stays 0
    code = activation_code(op.algorithm.data, elements, element=element)
    called = call_of_kernel(code, Slot.RESULT)
    return OwnCode(op, f"loop:{op.algorithm.data}", called, (operand,))


def _lookup(op: dnnl.LookupOp) -> OwnCode:
    operands = _operands((Arg.SRC, op.source), (Arg.WEIGHTS, op.table), (Arg.DST, op.output))
    code = lookup_code(math.prod(shape_of(op.output)), Cpu.host().features)
    called = call_of_kernel(code, Slot.SOURCE, Slot.WEIGHTS, Slot.RESULT)
    return OwnCode(op, "lookup", called, operands)


def _normalized_concat(op: dnnl.NormalizedConcatOp) -> OwnCode:
    join = join_of(op)
    sources = enumerate(op.sources, Arg.MULTIPLE_SRC)
    operands = _operands((Arg.SCALE, op.factors), *sources, (Arg.DST, op.output))
    called = call_of_kernel(join.code(), *join.slots, Slot.RESULT)
    return OwnCode(op, "loop:normalized_concat", called, operands)


def _conversion(op: dnnl.ConvertOp) -> OwnCode | None:
    """Returns the built-in code of a conversion, or `None` if a primitive computes it.

    Raises:
        CompilationError: the op names an algorithm that does not support this conversion.
    """
    if op.algorithm.data == "direct":
        return None
    code = interleaving(op, dnnl.layout_of)
    if code is None:
        raise CompilationError(
            f"{op.name}: algorithm is '{op.algorithm.data}', found {op.source.type} to"
            f" {op.output.type}; accepted are a few f32 planes to bf16 in NHWC"
        )
    operands = _operands((Arg.SRC, op.source), (Arg.DST, op.output))
    called = call_of_kernel(code, Slot.SOURCE, Slot.RESULT)
    return OwnCode(op, op.algorithm.data, called, operands)


def _quantized_convolution(op: dnnl.QuantizedConvolutionOp, threads: int) -> OwnCode:
    from byoc_mlir.backends.dnnl.primitives.own_integer_kernels import (
        packed,
        planned_integer_kernel,
    )

    kernel = planned_integer_kernel(op, dnnl.layout_of)
    residuals = ((Arg.SRC_1, one) for one in op.post_op_operands)
    operands = _operands((Arg.SRC, op.arguments[0]), (Arg.DST, op.output), *residuals)
    return _by_kernel(op, kernel, operands, partial(packed, op, kernel), threads)


def call_of_kernel(code: KernelCode, *slots: int) -> Generated:
    """Returns the call of a kernel whose slots take the operands in this order."""
    return Generated(partial(_add_call, code=code, slots=slots), code.numbers)


def _convolution(op: dnnl.ConvolutionOp, kernel: ConvolutionKernel, threads: int) -> OwnCode:
    weights = op.weights.owner
    assert isinstance(weights, ConstantOp)
    operands = _operands(
        (Arg.SRC, op.arguments[0]),
        (Arg.DST, op.output),
        (Arg.BIAS, op.bias),
        (Arg.SRC_1, residual_of(op)),
    )
    return _by_kernel(op, kernel, operands, partial(kernel.packed, weights.weight), threads)


def _by_kernel(
    op: dnnl.ExecutedOp,
    kernel: ConvolutionKernel | Kernel,
    operands: tuple[Operand, ...],
    pack: Callable[[], Weight],
    threads: int,
) -> OwnCode:
    workspace, code = kernel.workspace_bytes(threads), kernel.code(threads)
    slots = (
        *((Slot.WORKSPACE,) if workspace else ()),
        Slot.WEIGHTS,
        *(_SLOTS[Arg(one.argument)] for one in operands),
    )
    implementation = f"winograd:{kernel.name}" if kernel.name in ALGORITHMS else kernel.name
    return OwnCode(op, implementation, call_of_kernel(code, *slots), operands, workspace, pack)


def _operands(*given: tuple[int, SSAValue | None]) -> tuple[Operand, ...]:
    """Returns the operands that there are, each with oneDNN's argument for it."""
    types = Types(dnnl.layout_of)
    return tuple(types.operand(argument, value) for argument, value in given if value is not None)


def _add_call(module: ModuleBuilder, code: KernelCode, slots: tuple[int, ...]) -> str:
    """Adds `i32 (arguments, table)`, which calls a kernel.

    It passes the address of each argument's memory in the kernel's slot for it, in the order of
    `slots`.
    """
    kernel = code.define(module)
    name = f"{kernel}_of_memory_objects_{'_'.join(f'{slot:d}' for slot in slots)}"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, POINTER), internal=True)
    arguments, table = function.parameters
    pointers = function.stack_slots(max(len(Slot), max(slots) + 1))
    for slot in Slot:
        if slot not in slots:
            function.store(function.null(), function.slot(pointers, slot))
    read_addresses(function, arguments, pointers, slots)
    function.store(table, function.slot(pointers, Slot.PARAMETERS))
    function.do(kernel, pointers)
    function.finish(function.integer(0, i32))
    return name
