"""The backend `cuda`: kernels that the compiler generates for a GPU.

Methods import what they use, because every compilation without targets imports the class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from byoc_mlir.backends.base import Backend, CodegenContext, NativeCode, Rule


class CudaBackend(Backend):
    """Backend that generates a GPU's code for ops that no library takes.

    The host compiler's passes lower a region to buffers, `map-to-grid` maps it to threads, and LLVM
    generates PTX.
    """

    name: ClassVar[str] = "cuda"
    memory_space: ClassVar[str] = "cuda"
    environment: ClassVar[tuple[str, ...]] = ("BYOC_CUDA_LIBRARY",)

    def describe(self) -> str:
        return "kernels for compute capability 7.5 or later"

    def op_rules(self) -> Mapping[str, Rule]:
        from byoc_mlir.backends.cuda.rules import RULES

        return RULES

    def passes(self) -> Mapping[str, Callable[[], type[ModulePass]]]:
        from byoc_mlir.backends.cuda.kernels.map_to_grid import MapToGrid
        from byoc_mlir.backends.cuda.kernels.outline_grid_kernels import OutlineGridKernels
        from byoc_mlir.backends.cuda.kernels.pad_in_one_kernel import PadInOneKernel

        passes = (MapToGrid, OutlineGridKernels, PadInOneKernel)
        return {one.name: lambda one=one: one for one in passes}

    def codegen(self, region: FuncOp, context: CodegenContext) -> NativeCode:
        from byoc_mlir.backends.cuda.images import image_of
        from byoc_mlir.backends.cuda.kernels.compile import compile_region
        from byoc_mlir.backends.cuda.region_code import region_code
        from byoc_mlir.backends.region import outputs_of

        kernels = compile_region(region)
        tensors = len(region.args) + len(outputs_of(region))
        return region_code(region.sym_name.data, kernels, image_of(kernels.module), tensors)
