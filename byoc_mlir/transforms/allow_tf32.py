"""The pass `allow-tf32`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from byoc_mlir.abi import COMPUTED_IN
from byoc_mlir.transforms.blocks import is_node, partitioned_blocks
from byoc_mlir.transforms.kept_float import keep_float
from byoc_mlir.transforms.profitability import ProfitableGemms


@dataclass(frozen=True)
class AllowTf32(ModulePass):
    """Marks `f32` matmuls and convolutions whose operands a backend may round to `tf32`, 10 bits of
    mantissa. Types stay `f32`, and sums too.

    Runs between `merge-composite` and `annotate-target`.

    Options:
        targets: backends that report what they compute faster.
        exact: names of nodes whose products stay in `f32`.

    ```mlir
    %0 = relay.nn.dense %x, %w : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32>
    // becomes
    %0 = relay.nn.dense %x, %w {byoc.computed_in = "tf32"} : (…) -> tensor<4x2xf32>
    ```
    """

    name = "allow-tf32"

    targets: tuple[str, ...]
    exact: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gains = ProfitableGemms("tf32", self.targets, self.exact)
        for block in partitioned_blocks(op):
            for node in filter(is_node, block.ops):
                product = gains.product(node)
                if product is not None:
                    product.op.attributes[COMPUTED_IN] = StringAttr("tf32")
        keep_float(op, gains.kept_float)
