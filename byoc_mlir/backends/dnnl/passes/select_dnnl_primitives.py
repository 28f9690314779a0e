"""The pass `select-dnnl-primitives`: the implementation of each op, and its scratchpad."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.codegen.selection import select
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass


@dataclass(frozen=True)
class SelectDnnlPrimitives(RegionPass):
    """Records the name and the scratchpad of each op's implementation, oneDNN's or built-in.

    Options:
        threads: the OpenMP threads that will run the region.

    ```mlir
    %0 = dnnl.convolution %x, %w {strides = [1, 1], …} : …
    ```
    becomes
    ```mlir
    %0 = dnnl.convolution %x, %w {strides = [1, 1], …, implementation = "brgconv:avx2",
        scratchpad_bytes = 65536} : …
    ```

    Raises:
        CompilationError: an op has no implementation but reference code, so the host is faster.
    """

    name = "select-dnnl-primitives"
    threads: int = 1

    def change(self, region: FuncOp) -> None:
        for op in region.body.block.ops:
            if isinstance(op, dnnl.ExecutedOp):
                found = select(op, self.threads)
                size = found.scratchpad_bytes
                op.implementation = StringAttr(found.implementation)
                op.scratchpad_bytes = IntegerAttr(size, i64) if size else None
