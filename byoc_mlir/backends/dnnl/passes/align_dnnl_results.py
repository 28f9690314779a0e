"""The pass `align-dnnl-results`: ops that need aligned memory do not write to a region's output."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.shared_memory import root


class AlignDnnlResults(RegionPass):
    """Copies results of resampling that are returned.

    Large results are written with non-temporal stores, which fault at unaligned addresses. The
    workspace is aligned, but an array of the caller may not be.

    ```mlir
    %0 = dnnl.resampling %x {algorithm = "linear"} : …
    func.return %0 : tensor<1x21x224x224xf32>
    ```
    becomes
    ```mlir
    %0 = dnnl.resampling %x {algorithm = "linear"} : …
    %1 = dnnl.reorder %0 : (tensor<1x21x224x224xf32>) -> tensor<1x21x224x224xf32>
    func.return %1 : tensor<1x21x224x224xf32>
    ```
    """

    name = "align-dnnl-results"

    def change(self, region: FuncOp) -> None:
        last = region.body.block.last_op
        assert isinstance(last, ReturnOp)
        ops = region.body.block.ops
        aligned = {root(op.output) for op in ops if isinstance(op, dnnl.ResamplingOp)}
        for index, value in enumerate(last.operands):
            if root(value) in aligned:
                last.operands[index] = _copied(value, last)


def _copied(value: SSAValue, last: ReturnOp) -> SSAValue:
    copy = dnnl.ReorderOp(value, result_types=[value.type])
    copy.location = last.location
    Rewriter.insert_op(copy, InsertPoint.before(last))
    return copy.results[0]
