"""The pass `round-dnnl-results`: fuses rounding to `bf16` into softmax and layer norm."""

from __future__ import annotations

from xdsl.dialects.builtin import bf16, f32
from xdsl.dialects.func import FuncOp
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.partition.reference_code import only_reference
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.limits import in_time
from byoc_mlir.onednn.engine import openmp_threads


class RoundDnnlResults(RegionPass):
    """Changes softmax and layer norm to write `bf16`, if a conversion to `bf16` is the only user of
    their `f32` result.

    oneDNN must have faster code than reference code for this form.

    ```mlir
    %1 = dnnl.softmax %0 {axis = 1} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = dnnl.convert %1 {element = bf16} : (tensor<8x16xf32>) -> tensor<8x16xbf16>
    ```
    becomes
    ```mlir
    %2 = dnnl.softmax %0 {axis = 1, element = bf16} : (tensor<8x16xf32>) -> tensor<8x16xbf16>
    ```
    """

    name = "round-dnnl-results"

    def change(self, region: FuncOp) -> None:
        with openmp_threads(1):
            for op in in_time(region.body.block.ops):
                if isinstance(op, dnnl.ConvertOp) and op.element == bf16:
                    _fuse(op)


def _fuse(convert: dnnl.ConvertOp) -> None:
    before = convert.source.owner
    if (
        not isinstance(before, dnnl.SoftmaxOp | dnnl.LayerNormalizationOp)
        or not convert.source.has_one_use()
    ):
        return
    if tensor_type(convert.source).element_type != f32:
        return
    rounding = type(before).create(
        operands=before.operands,
        result_types=[convert.output.type],
        properties={**before.properties, "element": bf16},
    )
    rounding.location = before.location
    if only_reference(rounding) is not None:
        rounding.erase()
        return
    Rewriter.insert_op(rounding, InsertPoint.before(before))
    convert.output.replace_all_uses_with(rounding.results[0])
    Rewriter.erase_op(convert)
    Rewriter.erase_op(before)
