"""Calls of a function by all threads of an OpenMP team, each for some chunks of the iterations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import IndexType, UnrealizedConversionCastOp, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from byoc_mlir.kernels.parallel import PARALLEL_FOR
from byoc_mlir.lowering.to_llvm.emitter import integer_constant
from byoc_mlir.lowering.to_llvm.index_math import Bound, IndexMath
from byoc_mlir.lowering.to_llvm.types import POINTER, convert_type

_INDEX = IndexType()
_ALL_THREADS = 0


def call_in_parallel(
    builder: Builder,
    body: func.FuncOp,
    total: Bound,
    captured: Sequence[SSAValue],
    parent: func.FuncOp,
) -> None:
    """Calls `body(begin, end, captured...)` on all threads for the chunks of `[0, total)`.

    The captured values are passed in a struct on the stack of `parent`, whose code is being built.
    """
    name = f"{body.sym_name.data}_chunk"
    fields = llvm.LLVMStructType.from_type_list([convert_type(value.type) for value in captured])
    parent_block = parent.parent_block()
    assert parent_block is not None
    parent_block.insert_op_after(_chunk_function(name, body, captured, fields), body)
    data = _struct_on_stack(parent, fields)
    for position, value in enumerate(captured):
        builder.insert(
            llvm.StoreOp(_lowered(builder, value), _field(builder, data, fields, position))
        )
    chunk = builder.insert(llvm.AddressOfOp(name, POINTER)).result
    count = _lowered(builder, IndexMath(builder).value(total))
    threads = builder.insert(integer_constant(_ALL_THREADS, i32)).result
    builder.insert(llvm.CallOp(PARALLEL_FOR, chunk, data, count, threads))


def _chunk_function(
    name: str,
    body: func.FuncOp,
    captured: Sequence[SSAValue],
    fields: llvm.LLVMStructType,
) -> llvm.FuncOp:
    """Returns the function that threads call for a chunk: it unpacks the struct and calls
    `body`.
    """
    block = Block(arg_types=[POINTER, i64, i64])
    builder = Builder(InsertPoint.at_end(block))
    data, *bounds = block.args
    values: list[SSAValue] = []
    for position, (value, stored) in enumerate(zip(captured, fields.types, strict=True)):
        loaded = llvm.LoadOp(_field(builder, data, fields, position), stored)
        held = builder.insert(loaded).dereferenced_value
        values.append(_as_type(builder, held, value.type))
    begin, end = (_as_type(builder, bound, _INDEX) for bound in bounds)
    builder.insert(func.CallOp(body.sym_name.data, [begin, end, *values], []))
    builder.insert(llvm.ReturnOp())
    function = llvm.FuncOp(
        name,
        llvm.LLVMFunctionType(block.arg_types),
        llvm.LinkageAttr("internal"),
        body=Region(block),
    )
    function.location = body.location
    return function


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


def _lowered(builder: Builder, value: SSAValue) -> SSAValue:
    return _as_type(builder, value, convert_type(value.type))


def _as_type(builder: Builder, value: SSAValue, type_: Attribute) -> SSAValue:
    if value.type == type_:
        return value
    return builder.insert(UnrealizedConversionCastOp.get([value], [type_])).results[0]
