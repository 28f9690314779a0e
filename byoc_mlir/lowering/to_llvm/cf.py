"""`cf` to `llvm`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import cf
from xdsl.ir import SSAValue

from byoc_mlir.dialects import llvm_ext
from byoc_mlir.kernels import ops
from byoc_mlir.lowering.to_llvm.emitter import Emitter, Lowerings


def _br(op: cf.BranchOp, emitter: Emitter) -> Sequence[SSAValue]:
    emitter.add(ops.branch(emitter.successor(op.successors[0]), emitter.all(op.operands)))
    return ()


def _cond_br(op: cf.ConditionalBranchOp, emitter: Emitter) -> Sequence[SSAValue]:
    then = emitter.successor(op.then_block), emitter.all(op.then_arguments)
    otherwise = emitter.successor(op.else_block), emitter.all(op.else_arguments)
    emitter.add(ops.branch_if(emitter[op.cond], then, otherwise))
    return ()


def _switch(op: cf.SwitchOp, emitter: Emitter) -> Sequence[SSAValue]:
    values = () if op.case_values is None else op.case_values.get_values()
    cases = [
        (int(value), emitter.successor(block), emitter.all(args))
        for value, block, args in zip(values, op.case_blocks, op.case_operand, strict=True)
    ]
    default = (emitter.successor(op.default_block), emitter.all(op.default_operands))
    emitter.add(llvm_ext.SwitchOp(emitter[op.flag], default, cases))
    return ()


LOWERINGS: Lowerings = {
    cf.BranchOp: _br,
    cf.ConditionalBranchOp: _cond_br,
    cf.SwitchOp: _switch,
}
