"""The pass `convert-to-llvm`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func, llvm, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.ir.post_order import PostOrderIterator
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.limits import in_time
from byoc_mlir.lowering.check_legal import check_legal
from byoc_mlir.lowering.to_llvm import arith, math, matrices, vector
from byoc_mlir.lowering.to_llvm import func as func_lowering
from byoc_mlir.lowering.to_llvm import memref as memref_lowering
from byoc_mlir.lowering.to_llvm.emitter import Emitter, EntryPoint, Lowerings
from byoc_mlir.lowering.to_llvm.types import convert_type

_LOWERINGS: Lowerings = {
    **arith.LOWERINGS,
    **math.LOWERINGS,
    **func_lowering.LOWERINGS,
    **memref_lowering.LOWERINGS,
    **vector.LOWERINGS,
    **matrices.LOWERINGS,
}


class ConvertToLLVM(ModulePass):
    """Lowers func, cf, arith, math, memref, vector and x86vector to the `llvm` dialect.

    A memref becomes a bare pointer to its first element; shapes and strides must be static.
    `lower-scf-to-cf` and `plan-buffers` must run before. Functions in the `llvm` dialect stay as
    they are. The pass ends with `check-legal{stage=llvm}`.

    ```mlir
    func.func @f(%x: memref<4x8xf32>, %i: index) -> f32 {
      %c2 = arith.constant 2 : index
      %0 = memref.load %x[%c2, %i] : memref<4x8xf32>
      func.return %0 : f32
    }
    ```
    becomes
    ```mlir
    llvm.func @f(%x: !llvm.ptr {llvm.noalias, llvm.nonnull, llvm.noundef}, %i: i64) -> f32 {
      %0 = llvm.mlir.constant(16) : i64
      %1 = llvm.add %i, %0 overflow<nsw> : i64
      %2 = llvm.getelementptr inbounds %x[%1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %3 = llvm.load %2 : !llvm.ptr -> f32
      llvm.return %3 : f32
    }
    ```
    """

    name = "convert-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        externals: dict[str, EntryPoint] = {}
        for top in in_time(op.body.block.ops):
            lowered = _lower_top_level(top, externals)
            if lowered is not top:
                op.body.block.insert_op_before(lowered, top)
                top.detach()
                top.erase()
        _declare(op, externals)
        check_legal(op, "llvm")


def _lower_top_level(op: Operation, externals: dict[str, EntryPoint]) -> Operation:
    match op:
        case func.FuncOp():
            return func_lowering.lower_function(op, _lower_body(op.body, externals))
        case memref.GlobalOp():
            return memref_lowering.lower_global(op)
        case llvm.FuncOp() if not _is_lowered(op):
            source = op.detach_region(op.body)
            op.add_region(_lower_body(source, externals))
            source.drop_all_references()
            return op
        case _:
            return op


def _is_lowered(op: llvm.FuncOp) -> bool:
    return not any(type(inner) in _LOWERINGS for block in op.body.blocks for inner in block.ops)


def _lower_body(body: Region, externals: dict[str, EntryPoint]) -> Region:
    """Returns a lowered copy of a function body, without unreachable blocks."""
    if body.first_block is None:
        return Region()
    emitter = Emitter(externals)
    order = list(reversed(list(PostOrderIterator(body.first_block))))
    new_blocks = [Block(arg_types=[convert_type(arg.type) for arg in old.args]) for old in order]
    for old, new in zip(order, new_blocks, strict=True):
        emitter.bind_block(old, new)
    for old, new in zip(order, new_blocks, strict=True):
        emitter.block = new
        for op in in_time(old.ops):
            _lower_op(op, emitter)
    emitter.flush_hoisted(new_blocks[0])
    return Region(new_blocks)


def _lower_op(op: Operation, emitter: Emitter) -> None:
    emitter.start(op)
    lowering = _LOWERINGS.get(type(op))
    if lowering is None:
        _move(op, emitter)
        return
    try:
        results = lowering(op, emitter)
    except PassFailedException as error:
        raise PassFailedException(f"{op.name} at {op.location}: {error}") from error
    for old, new in zip(op.results, results, strict=True):
        emitter.bind(old, new)


def _move(op: Operation, emitter: Emitter) -> None:
    """Moves an op without a lowering: an llvm op, or an op that the legality check will report."""
    op.detach()
    op.operands = emitter.all(op.operands)
    op.successors = [emitter.successor(block) for block in op.successors]
    emitter.block.add_op(op)


def _declare(module: ModuleOp, externals: dict[str, EntryPoint]) -> None:
    known = {op.sym_name.data for op in module.body.block.ops if isinstance(op, llvm.FuncOp)}
    for name, (inputs, output) in externals.items():
        if name not in known:
            type_ = llvm.LLVMFunctionType(list(inputs), output)
            module.body.block.add_op(llvm.FuncOp(name, type_, llvm.LinkageAttr("external")))
