"""Reading and replacement of constant operands of `dnnl` ops."""

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.tensors import Array


def replace_constant(op: Operation, index: int, array: Array) -> None:
    """Replaces a constant operand by another array.

    The old constant is erased if it has no more users.
    """
    old = op.operands[index].owner
    assert isinstance(old, ConstantOp)
    constant = ConstantOp.of(old.output.name_hint or "constant", array)
    constant.location = op.location
    Rewriter.insert_op(constant, InsertPoint.before(op))
    op.operands[index] = constant.output
    old.erase_if_unused()
