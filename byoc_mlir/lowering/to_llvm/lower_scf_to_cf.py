"""The pass `lower-scf-to-cf`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, cf, func, llvm, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

_NO_WRAP = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])
_NO_FLAGS = arith.IntegerOverflowAttr("none")


class LowerScfToCf(ModulePass):
    """Converts `scf.for`, `scf.if` and `scf.while` to blocks and branches, in one linear walk.

    `outline-parallel`, which runs before, handles `scf.parallel`.

    ```mlir
    %r = scf.for %i = %lb to %ub step %s iter_args(%a = %init) -> (f32) {
      %b = arith.addf %a, %x : f32
      scf.yield %b : f32
    }
    ```
    becomes
    ```mlir
      cf.br ^header(%lb, %init : index, f32)
    ^header(%i: index, %a: f32):
      %c = arith.cmpi slt, %i, %ub : index
      cf.cond_br %c, ^body, ^exit
    ^body:
      %b = arith.addf %a, %x : f32
      %next = arith.addi %i, %s overflow<nsw> : index
      cf.br ^header(%next, %b : index, f32)
    ^exit:  // %a stands for %r
    ```
    """

    name = "lower-scf-to-cf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp | llvm.FuncOp):
                flatten(function.body)


def flatten(region: Region) -> None:
    """Converts the structured control flow in a region to blocks and branches."""
    _Flattener().flatten(region)


class _Flattener:
    """Rebuilder of a region, block by block; `_block` is the block that receives ops."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._block = Block()

    def flatten(self, region: Region) -> None:
        """Rebuilds the region, unless it has no structured control flow."""
        old = tuple(region.blocks)
        if not any(op.regions for block in old for op in block.ops):
            return
        for block in old:
            region.detach_block(block)
            self._refill(block, tuple(block.ops))
        region.add_block(self._blocks)

    def _refill(self, block: Block, ops: Sequence[Operation]) -> None:
        """Lowers ops to `block`, and to the blocks behind it."""
        for op in ops:
            op.detach()
        self._open(block)
        for op in ops:
            self._lower(op)

    def _open(self, block: Block) -> None:
        self._blocks.append(block)
        self._block = block

    def _emit(self, op: Operation, source: Operation) -> None:
        op.location = source.location
        self._block.add_op(op)

    def _lower(self, op: Operation) -> None:
        if not op.regions:
            self._block.add_op(op)
            return
        match op:
            case scf.ForOp():
                self._lower_for(op)
            case scf.IfOp():
                self._lower_if(op)
            case scf.WhileOp():
                self._lower_while(op)
            case _:
                self._block.add_op(op)

    def _lower_for(self, op: scf.ForOp) -> None:
        lower, upper, step, *initial = op.operands
        header, body, exit_ = Block(arg_types=op.body.block.arg_types), Block(), Block()
        self._emit(cf.BranchOp(header, lower, *initial), op)
        self._open(header)
        induction, *carried = header.args
        in_range = arith.CmpiOp(induction, upper, "slt")
        self._emit(in_range, op)
        self._emit(cf.ConditionalBranchOp(in_range, body, (), exit_, ()), op)
        yielded = self._inline(op.body.block, body, header.args)
        flags = _NO_WRAP if isinstance(induction.type, IndexType) else _NO_FLAGS
        following = arith.AddiOp(induction, step, overflow=flags)
        self._emit(following, op)
        self._emit(cf.BranchOp(header, following.result, *yielded), op)
        self._finish(op, exit_, carried)

    def _lower_if(self, op: scf.IfOp) -> None:
        merge = Block(arg_types=op.result_types)
        branches = [region.block for region in op.regions if region.first_block is not None]
        targets = [Block() for _ in branches]
        otherwise = targets[1] if len(targets) == 2 else merge
        self._emit(cf.ConditionalBranchOp(op.cond, targets[0], (), otherwise, ()), op)
        for branch, target in zip(branches, targets, strict=True):
            yielded = self._inline(branch, target, ())
            self._emit(cf.BranchOp(merge, *yielded), op)
        self._finish(op, merge, merge.args)

    def _lower_while(self, op: scf.WhileOp) -> None:
        before, after, exit_ = Block(arg_types=op.before_region.block.arg_types), Block(), Block()
        self._emit(cf.BranchOp(before, *op.arguments), op)
        condition, *forwarded = self._inline(op.before_region.block, before, before.args)
        self._emit(cf.ConditionalBranchOp(condition, after, (), exit_, ()), op)
        yielded = self._inline(op.after_region.block, after, tuple(forwarded))
        self._emit(cf.BranchOp(before, *yielded), op)
        self._finish(op, exit_, forwarded)

    def _inline(
        self, source: Block, target: Block, args: tuple[SSAValue, ...]
    ) -> tuple[SSAValue, ...]:
        """Moves the ops of `source` to `target`, and returns the terminator's operands."""
        for old, new in zip(source.args, args, strict=True):
            old.replace_all_uses_with(new)
        *ops, terminator = source.ops
        self._refill(target, ops)
        operands = tuple(terminator.operands)
        terminator.detach()
        terminator.erase()
        return operands

    def _finish(self, op: Operation, block: Block, results: Sequence[SSAValue]) -> None:
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
        self._open(block)
