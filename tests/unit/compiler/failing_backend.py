"""Backend that accepts cosines, and cannot compile them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from byoc_mlir.backends import Backend, CodegenContext, CSource, Option, register_backend


@dataclass(frozen=True)
class FailingPass(ModulePass):
    """Pass that fails."""

    name = "failing-pass"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise ValueError("it cannot be done")


@register_backend
class Failing(Backend):
    """Backend that fails in the stage that its option names."""

    name = "unable"
    options = {"how": Option("codegen", "where it fails", ("codegen", "pass", "c"))}

    def op_rules(self):
        return {"cos": lambda op: None}

    def region_passes(self) -> Sequence[ModulePass]:
        return (FailingPass(),) if self.settings["how"] == "pass" else ()

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        if self.settings["how"] == "c":
            return CSource("this is no C")
        raise KeyError("cos")
