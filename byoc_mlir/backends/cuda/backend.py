"""The backend `cuda`: kernels that the compiler generates for a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from byoc_mlir.backends.base import Backend, CodegenContext, NativeCode, Rule
from byoc_mlir.backends.cuda.driver import ENVIRONMENT_VARIABLE
from byoc_mlir.backends.cuda.images import image_of
from byoc_mlir.backends.cuda.kernels.compile import compile_region
from byoc_mlir.backends.cuda.kernels.map_to_grid import MapToGrid
from byoc_mlir.backends.cuda.kernels.outline_grid_kernels import OutlineGridKernels
from byoc_mlir.backends.cuda.kernels.pad_in_one_kernel import PadInOneKernel
from byoc_mlir.backends.cuda.region_code import region_code
from byoc_mlir.backends.cuda.rules import RULES
from byoc_mlir.backends.region import outputs_of


class CudaBackend(Backend):
    """Generates GPU code for the ops that no library takes: the host compiler's passes until its
    loops, then `map-to-grid`, then PTX.
    """

    name: ClassVar[str] = "cuda"
    memory_space: ClassVar[str] = "cuda"
    environment: ClassVar[tuple[str, ...]] = (ENVIRONMENT_VARIABLE,)

    def describe(self) -> str:
        return "kernels for compute capability 7.5 or later"

    def op_rules(self) -> Mapping[str, Rule]:
        return RULES

    def passes(self) -> Mapping[str, Callable[[], type[ModulePass]]]:
        passes = (MapToGrid, OutlineGridKernels, PadInOneKernel)
        return {one.name: lambda one=one: one for one in passes}

    def codegen(self, region: FuncOp, context: CodegenContext) -> NativeCode:
        kernels = compile_region(region)
        tensors = len(region.args) + len(outputs_of(region))
        return region_code(region.sym_name.data, kernels, image_of(kernels.module), tensors)
