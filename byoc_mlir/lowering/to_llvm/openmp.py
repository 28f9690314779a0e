"""Calls of a function by all threads of a team, through libgomp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, func, llvm
from xdsl.dialects.builtin import (
    IndexType,
    ModuleOp,
    UnrealizedConversionCastOp,
    i32,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from byoc_mlir.lowering.to_llvm.emitter import integer_constant
from byoc_mlir.lowering.to_llvm.index_math import Bound, IndexMath
from byoc_mlir.lowering.to_llvm.types import POINTER, convert_type

_INDEX = IndexType()
_ALL_THREADS = 0
_NO_FLAGS = 0

RUNTIME_FUNCTIONS: Mapping[str, llvm.LLVMFunctionType] = {
    "GOMP_parallel": llvm.LLVMFunctionType([POINTER, POINTER, i32, i32]),
    "omp_get_thread_num": llvm.LLVMFunctionType([], i32),
    "omp_get_num_threads": llvm.LLVMFunctionType([], i32),
}
"""What the generated code needs of libgomp."""


def declare_runtime(module: ModuleOp) -> None:
    """Declares the functions that calls of `call_in_parallel` need."""
    known = {op.sym_name.data for op in module.ops if isinstance(op, llvm.FuncOp)}
    for name, type_ in RUNTIME_FUNCTIONS.items():
        if name not in known:
            module.body.block.add_op(llvm.FuncOp(name, type_, llvm.LinkageAttr("external")))


def call_in_parallel(
    builder: Builder,
    body: func.FuncOp,
    total: Bound,
    captured: Sequence[SSAValue],
    parent: func.FuncOp,
) -> None:
    """Calls `body(begin, end, captured...)` on every thread, each with its share of `[0, total)`.

    The captured values go through a struct on the stack of `parent`, whose code is being built.
    """
    name = f"{body.sym_name.data}_thread"
    passed = list(captured) if isinstance(total, int) else [total, *captured]
    fields = llvm.LLVMStructType.from_type_list([convert_type(value.type) for value in passed])
    parent_block = parent.parent_block()
    assert parent_block is not None
    parent_block.insert_op_after(_thread_function(name, body, total, passed, fields), body)
    data = _struct_on_stack(parent, fields)
    for position, value in enumerate(passed):
        builder.insert(
            llvm.StoreOp(_lowered(builder, value), _field(builder, data, fields, position))
        )
    thread = builder.insert(llvm.AddressOfOp(name, POINTER)).result
    team = builder.insert(integer_constant(_ALL_THREADS, i32)).result
    flags = builder.insert(integer_constant(_NO_FLAGS, i32)).result
    builder.insert(llvm.CallOp("GOMP_parallel", thread, data, team, flags))


def _thread_function(
    name: str,
    body: func.FuncOp,
    total: Bound,
    passed: Sequence[SSAValue],
    fields: llvm.LLVMStructType,
) -> llvm.FuncOp:
    """What one thread runs: it unpacks the struct and calls `body` on its share."""
    block = Block(arg_types=[POINTER])
    builder = Builder(InsertPoint.at_end(block))
    data = block.args[0]
    values = [
        _unpacked(builder, data, fields, position, value.type)
        for position, value in enumerate(passed)
    ]
    if not isinstance(total, int):
        total, *values = values
    begin, end = _share(builder, total)
    builder.insert(func.CallOp(body.sym_name.data, [begin, end, *values], []))
    builder.insert(llvm.ReturnOp())
    function = llvm.FuncOp(
        name,
        llvm.LLVMFunctionType([POINTER]),
        llvm.LinkageAttr("internal"),
        body=Region(block),
    )
    function.location = body.location
    return function


def _share(builder: Builder, total: Bound) -> tuple[SSAValue, SSAValue]:
    """The range of this thread: `[total * id / n, total * (id + 1) / n)`."""
    math = IndexMath(builder)
    thread = _ask_runtime(builder, "omp_get_thread_num")
    threads = _ask_runtime(builder, "omp_get_num_threads")
    begin = math.divide(math.multiply(total, thread), threads)
    end = math.divide(math.multiply(total, math.add(thread, 1)), threads)
    return math.value(begin), math.value(end)


def _ask_runtime(builder: Builder, name: str) -> SSAValue:
    call = builder.insert(llvm.CallOp(name, return_type=i32))
    return builder.insert(arith.IndexCastOp(call.results[0], _INDEX)).result


def _struct_on_stack(parent: func.FuncOp, fields: llvm.LLVMStructType) -> SSAValue:
    entry = parent.body.blocks.first
    assert entry is not None
    builder = Builder(InsertPoint.at_start(entry))
    one = builder.insert(integer_constant(1)).result
    return builder.insert(llvm.AllocaOp(one, fields, alignment=8)).res


def _field(
    builder: Builder, data: SSAValue, fields: llvm.LLVMStructType, position: int
) -> SSAValue:
    return builder.insert(llvm.GEPOp(data, [0, position], fields, inbounds=True)).result


def _unpacked(
    builder: Builder,
    data: SSAValue,
    fields: llvm.LLVMStructType,
    position: int,
    type_: Attribute,
) -> SSAValue:
    address = _field(builder, data, fields, position)
    stored = fields.types.data[position]
    value = builder.insert(llvm.LoadOp(address, stored)).dereferenced_value
    if stored == type_:
        return value
    return builder.insert(UnrealizedConversionCastOp.get([value], [type_])).results[0]


def _lowered(builder: Builder, value: SSAValue) -> SSAValue:
    type_ = convert_type(value.type)
    if type_ == value.type:
        return value
    return builder.insert(UnrealizedConversionCastOp.get([value], [type_])).results[0]
