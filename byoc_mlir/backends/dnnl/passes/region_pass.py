"""What all passes over oneDNN's regions share."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects import byoc


class RegionPass(ModulePass, ABC):
    """A pass that changes oneDNN's regions, one after the other, and leaves the rest alone."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in op.ops:
            if isinstance(func, FuncOp) and byoc.region_compiler(func) == "dnnl":
                self.change(func)

    @abstractmethod
    def change(self, region: FuncOp) -> None:
        """Changes one region in place."""


def replace_located(op: Operation, *new: Operation) -> None:
    """Puts ops in the place of one, located where it is; the last of them gives its results."""
    for one in new:
        one.location = op.location
    Rewriter.replace_op(op, new)
