"""The pass `choose-openblas-blocks`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from byoc_mlir.backends.openblas.blocks import block_for
from byoc_mlir.backends.openblas.products import BLOCK, multiplying_op, product_of
from byoc_mlir.backends.region import nodes_of
from byoc_mlir.calibration import using_file
from byoc_mlir.dialects import byoc
from byoc_mlir.dialects.relay.constant import ConstantOp, WeightAttr


@dataclass(frozen=True)
class ChooseOpenBlasBlocks(ModulePass):
    """Marks the matmuls in OpenBLAS's regions for which several small calls are faster than one.

    A constant that is stored transposed is then packed into panels, unless its memory belongs to
    someone else: such a matmul stays one call.

    Options:
        calibration: a file of calibration, `compile(calibration=…)`.

    ```mlir
    %0 = relay.nn.matmul %x, %w : (tensor<48x384xf32>, tensor<384x384xf32>) -> tensor<48x384xf32>
    // becomes
    %0 = relay.nn.matmul %x, %w {"openblas.block" = "48x96x128"} : …
    ```
    """

    name = "choose-openblas-blocks"

    calibration: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with using_file(self.calibration):
            for region in op.ops:
                if isinstance(region, FuncOp) and byoc.region_compiler(region) == "openblas":
                    _choose(region)


def _choose(region: FuncOp) -> None:
    for op in nodes_of(region):
        block = block_for(product_of(op), may_pack=_may_pack(op.operands[1].owner))
        if block is not None:
            multiplying_op(op).attributes[BLOCK] = StringAttr(str(block))


def _may_pack(matrix: Operation | Block) -> bool:
    """True if a matrix is a constant whose memory belongs to the compiler."""
    if not isinstance(matrix, ConstantOp) or not isinstance(matrix.value, WeightAttr):
        return False
    return not matrix.is_borrowed
