"""The pass `place-dnnl-concats`: writes the parts of a concatenation directly to its result."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.rewriter import Rewriter

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.joins import can_join
from byoc_mlir.limits import in_time


class PlaceDnnlConcats(RegionPass):
    """Removes concatenations whose parts can be contiguous in the memory of the result.

    Each part must be contiguous in the result, be computed in the region, and be in no other
    concatenation.

    ```mlir
    %2 = dnnl.concat %0, %1 {axis = 1} : (tensor<1x16x8x8xf32, #dnnl.layout<"aBcd8b">>, …
    ```
    becomes
    ```mlir
    %2 = dnnl.join %0, %1 {axis = 1} : (tensor<1x16x8x8xf32, #dnnl.layout<"aBcd8b">>, …
    ```
    """

    name = "place-dnnl-concats"

    def change(self, region: FuncOp) -> None:
        for op in in_time(region.body.block.ops):
            if isinstance(op, dnnl.ConcatOp) and can_join(op, dnnl.layout_of):
                join = dnnl.JoinOp(op.sources, axis=op.axis, result_types=[op.output.type])
                join.location = op.location
                Rewriter.replace_op(op, join)
