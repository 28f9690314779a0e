"""A backend on the second device whose regions are functions in the `llvm` dialect.

Results between the kernels of a region lie in the workspace, which is device memory. `@R_open`
keeps its address in slot 0 of the context.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from xdsl.builder import ImplicitBuilder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, IntegerType, ModuleOp, i8, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region, SSAValue

from byoc_mlir.backends import CodegenContext, NativeCode, Rule
from byoc_mlir.backends.region import constants_of, elementwise_f32, nodes_of, outputs_of
from byoc_mlir.dialects import llvm_ext
from byoc_mlir.dialects.relay.base import shape_of
from fakenpu.kernel_calls import KernelBackend, KernelCall, details, kernel_call
from fakenpu.library import library

POINTER = llvm.LLVMPointerType()
_ALIGNMENT = 64
_NOT_EQUAL = 1
"""Predicate of `llvm.icmp`."""


class FakeNpu2Backend(KernelBackend):
    """Backend for convolutions, dense layers, pools, additions and products, with ReLU."""

    name: ClassVar[str] = "fakenpu2"
    memory_space: ClassVar[str] = "fakenpu2"
    api_version: ClassVar[int] = 2

    def op_rules(self) -> Mapping[str, Rule]:
        return {**super().op_rules(), "add": elementwise_f32, "multiply": elementwise_f32}

    def codegen(self, region: FuncOp, context: CodegenContext) -> NativeCode:
        offsets, size = _workspace(region)
        functions = [_open_function(region), _start_function(region, offsets, self.memory_space)]
        return NativeCode(
            ModuleOp([*_declarations(region, self.memory_space), *functions]),
            context_slots=1,
            workspace_bytes=size,
            constants=tuple(op.weight for op in constants_of(region)),
            libraries=(library(self.memory_space),),
            details=details(region, "kernel"),
        )


def _workspace(region: FuncOp) -> tuple[Mapping[SSAValue, int], int]:
    """Returns the offsets of values that are no outputs, and the workspace's size."""
    offsets: dict[SSAValue, int] = {}
    size = 0
    for op in nodes_of(region):
        if op.results[0] not in outputs_of(region):
            offsets[op.results[0]] = size
            size += math.ceil(_bytes(op.results[0]) / _ALIGNMENT) * _ALIGNMENT
    return offsets, size


def _declarations(region: FuncOp, device: str) -> list[llvm.FuncOp]:
    calls = [kernel_call(op) for op in nodes_of(region)]
    kinds = {call.function: (len(call.operands), len(call.sizes)) for call in calls}
    kinds["copy"] = (1, 1)
    return [
        llvm.FuncOp(
            f"{device}_{function}",
            llvm.LLVMFunctionType([POINTER] * (2 + operands) + [i64] * sizes, i32),
            llvm.LinkageAttr("external"),
        )
        for function, (operands, sizes) in kinds.items()
    ]


def _open_function(region: FuncOp) -> llvm.FuncOp:
    block = Block(arg_types=[POINTER] * 3)
    _, context, workspace = block.args
    with ImplicitBuilder(block):
        llvm.StoreOp(workspace, context)
        llvm.ReturnOp(_number(0, i32))
    return _function(f"{region.sym_name.data}_open", block)


def _start_function(region: FuncOp, offsets: Mapping[SSAValue, int], device: str) -> llvm.FuncOp:
    constants = [op.output for op in constants_of(region)]
    outputs = outputs_of(region)
    block = Block(arg_types=[POINTER] * (3 + len(constants) + len(region.args) + len(outputs)))
    _, context, queue, *tensors = block.args
    given = dict(zip([*constants, *region.args], tensors, strict=False))
    results = tensors[len(given) :]
    at: dict[SSAValue, SSAValue] = {}
    for value, result in zip(outputs, results, strict=True):
        at.setdefault(value, result)
    at |= given
    with ImplicitBuilder(block):
        workspace = llvm.LoadOp(context, POINTER).dereferenced_value
        at |= {
            value: llvm.GEPOp(workspace, [offset], i8).result for value, offset in offsets.items()
        }
        calls = _Calls(device, queue, at)
        for op in nodes_of(region):
            calls.add(kernel_call(op), at[op.results[0]])
        for value, result in zip(outputs, results, strict=True):
            if at[value] is not result:  # a value that is returned twice, or an input
                calls.add(KernelCall("copy", (value,), (_bytes(value) // 4,)), result)
        llvm.ReturnOp(calls.status)
    return _function(f"{region.sym_name.data}_start", block)


class _Calls:
    """Calls of kernels in the current block, and the status of the first that failed."""

    def __init__(self, device: str, queue: SSAValue, at: Mapping[SSAValue, SSAValue]):
        self._device, self._queue, self._at = device, queue, at
        self.status: SSAValue = _number(0, i32)

    def add(self, call: KernelCall, result: SSAValue) -> None:
        """Adds the call of a kernel that writes to `result`."""
        operands = [_null() if value is None else self._at[value] for value in call.operands]
        sizes = [_number(size, i64) for size in call.sizes]
        function = f"{self._device}_{call.function}"
        made = llvm.CallOp(function, self._queue, *operands, result, *sizes, return_type=i32)
        failed = llvm_ext.ICmpOp(self.status, _number(0, i32), IntegerAttr(_NOT_EQUAL, i64))
        self.status = llvm.SelectOp(failed.res, self.status, made.results[0]).res


def _null() -> SSAValue:
    return llvm.ZeroOp(result_types=[POINTER]).res


def _number(value: int, type_: IntegerType) -> SSAValue:
    return llvm.ConstantOp(IntegerAttr(value, type_), type_).result


def _function(name: str, block: Block) -> llvm.FuncOp:
    type_ = llvm.LLVMFunctionType(list(block.arg_types), i32)
    return llvm.FuncOp(name, type_, llvm.LinkageAttr("internal"), body=Region(block))


def _bytes(value: SSAValue) -> int:
    return 4 * math.prod(shape_of(value))
