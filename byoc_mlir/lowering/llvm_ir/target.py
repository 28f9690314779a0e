"""The output target `llvm-ir`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from byoc_mlir.lowering.llvm_ir.translate import translate_module


@dataclass(frozen=True)
class LLVMIRTarget(Target):
    """Output target that prints a module of the `llvm` dialect as LLVM assembly."""

    name = "llvm-ir"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        output.write(translate_module(module))
