"""Base of all passes over oneDNN's regions, and replacements of ops and constants in them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects import byoc
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.tensors import Array


class RegionPass(ModulePass, ABC):
    """Base of passes that change oneDNN's regions one by one, and no other function."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.ops:
            if isinstance(func, FuncOp) and byoc.region_compiler(func) == "dnnl":
                self.change(func)

    @abstractmethod
    def change(self, region: FuncOp) -> None:
        """Changes one region in place."""


def replace_located(op: Operation, *new: Operation) -> None:
    """Replaces an op by new ops with its location; the last new op provides the results."""
    for one in new:
        one.location = op.location
    Rewriter.replace_op(op, new)


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
