"""PTX of kernels: the assembly that the driver translates for the GPU that it finds."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.lowering.llvm_ir.codegen import CodegenTarget, emit_assembly
from byoc_mlir.nvidia.gpu import ARCHITECTURE

_MAJOR, _MINOR = ARCHITECTURE
_TARGET = CodegenTarget("nvptx64-nvidia-cuda", f"sm_{_MAJOR}{_MINOR}", "")


def ptx_of(module: ModuleOp) -> str:
    """Returns the PTX of kernels in the `llvm` dialect.

    Raises:
        CompilationError: LLVM cannot generate code for the module.
    """
    return emit_assembly(module, _TARGET)
