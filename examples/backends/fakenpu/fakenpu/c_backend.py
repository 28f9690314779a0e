"""A backend on the device whose regions are C functions that enqueue the device's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.func import FuncOp

from byoc_mlir.backends import CodegenContext, CSource
from fakenpu.c_function import c_function
from fakenpu.kernel_calls import KernelBackend, details
from fakenpu.library import flags, library


class FakeNpuBackend(KernelBackend):
    """Backend for convolutions, dense layers and pools, with bias and ReLU."""

    name: ClassVar[str] = "fakenpu"
    memory_space: ClassVar[str] = "fakenpu"
    api_version: ClassVar[int] = 2

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        return self.codegen_regions([region], context)[0]

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        device = self.memory_space
        functions = [c_function(region, device) for region in regions]
        source = "\n".join(['#include "fakenpu.h"', *functions])
        return [
            CSource(source, flags(device), (library(device),), details=details(region, "kernel"))
            for region in regions
        ]
