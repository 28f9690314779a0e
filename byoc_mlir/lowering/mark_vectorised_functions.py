"""The pass `mark-vectorised-functions`: finds functions that LLVM need not optimise."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import AnyFloat, ModuleOp, UnitAttr, VectorType, i8, i16
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from byoc_mlir.abi import VECTORISED
from byoc_mlir.lowering.llvm_ir.parts import is_inlined, op_count


class MarkVectorisedFunctions(ModulePass):
    """Marks functions whose loops do no scalar work, so that LLVM need not optimise them.

    Their time is in vector instructions and in the functions that they call; LLVM's passes would
    take most of a compilation. Vectors of 8- and 16-bit integers are not marked: LLVM combines what
    widens and shuffles them.

    ```mlir
    llvm.func @product(%a: !llvm.ptr) { … a loop over llvm.call @tile(%b) … }
    llvm.func @copy(%a: !llvm.ptr) { … a loop over llvm.store %x, %b : f32, !llvm.ptr … }
    ```

    becomes

    ```mlir
    llvm.func @product(%a: !llvm.ptr) attributes {byoc.vectorised} { … }
    llvm.func @copy(%a: !llvm.ptr) { … }
    ```

    Functions stay as they are if they keep values on the stack, or call a short function in a loop.
    """

    name = "mark-vectorised-functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {
            function.sym_name.data: function
            for function in op.ops
            if isinstance(function, llvm.FuncOp) and function.body.blocks
            if VECTORISED not in function.attributes
        }
        short = {
            name for name, function in functions.items() if is_inlined(function, op_count(function))
        }
        for name, function in functions.items():
            if name not in short and not _gains(function, short):
                function.attributes[VECTORISED] = UnitAttr()


def _gains(function: llvm.FuncOp, short: AbstractSet[str]) -> bool:
    """True if LLVM's optimisations speed the function up."""
    if any(_is_register(op) for block in function.body.blocks for op in block.ops):
        return True
    return any(_block_gains(block) or _calls(block, short) for block in _looped(function))


def _is_register(op: Operation) -> bool:
    """True if an op allocates memory that LLVM replaces by a register."""
    return isinstance(op, llvm.AllocaOp) and all(
        isinstance(use.operation, llvm.LoadOp | llvm.StoreOp) for use in op.res.uses
    )


def _looped(function: llvm.FuncOp) -> set[Block]:
    """Returns the blocks in loops, and those between two loops."""
    following = {block: _destinations(block) for block in function.body.blocks}
    while True:
        entered = {one for destinations in following.values() for one in destinations}
        kept = {
            block: destinations & following.keys()
            for block, destinations in following.items()
            if block in entered and not destinations.isdisjoint(following)
        }
        if len(kept) == len(following):
            return {*kept}
        following = kept


def _destinations(block: Block) -> set[Block]:
    return set() if block.last_op is None else {*block.last_op.successors}


def _calls(block: Block, names: AbstractSet[str]) -> bool:
    return any(
        isinstance(op, llvm.CallOp) and op.callee is not None and op.callee.string_value() in names
        for op in block.ops
    )


def _block_gains(block: Block) -> bool:
    """True if a block has vectors of 8- or 16-bit integers, or computes or stores scalars and has
    no vectors.
    """
    types = [value.type for op in block.ops for value in (*op.operands, *op.results)]
    elements = [one.get_element_type() for one in types if isinstance(one, VectorType)]
    if elements:
        return any(element in (i8, i16) for element in elements)
    return any(isinstance(one, AnyFloat) for one in types) or any(
        isinstance(op, llvm.StoreOp) and not isinstance(op.value.type, llvm.LLVMPointerType)
        for op in block.ops
    )
