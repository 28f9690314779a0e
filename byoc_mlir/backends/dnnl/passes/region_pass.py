"""What all passes over oneDNN's regions share."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

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
