"""The pass `round-recurrent-weights`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, bf16, f32
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of, sizes_of, tensor_type
from byoc_mlir.dialects.relay.constant import derived_array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.recurrent import RecurrentOp
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.relay_to_linalg.recurrent_product import fills_panels
from byoc_mlir.runtime.system.cpu import target_cpu

_CACHE = 1 << 15
"""Size in bytes of L1, the smallest of x86-64 servers."""


@dataclass(frozen=True)
class RoundRecurrentWeights(ModulePass):
    """Rounds the weights of the host's recurrent layers to `bf16`, where that is faster.

    Rounding is faster if a step is bound by loading the weight: one batch entry uses it, and it is
    larger than L1. With more entries, a step is bound by arithmetic, and `f32` is as fast. State,
    gates and sums stay in `f32`.

    Options:
        exact: names of the nodes that stay in `f32`.
        always: true to round even if the processor has no instruction for GEMMs of `bf16`.

    ```mlir
    %0, %1, %2 = relay.nn.lstm %x, %w, … : (tensor<5x1x1x512xf32>, tensor<1x128x512xf32>, …) -> …
    // becomes
    %r = relay.constant #relay.weight<…> : tensor<1x128x512xbf16>
    %0, %1, %2 = relay.nn.lstm %x, %r, … : (tensor<5x1x1x512xf32>, tensor<1x128x512xbf16>, …) -> …
    ```
    """

    name = "round-recurrent-weights"

    exact: tuple[str, ...] = ()
    always: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.always and "avx512_bf16" not in target_cpu().features:
            return
        for block in host_blocks(op):
            for inner in in_time(block.walk()):
                if isinstance(inner, RecurrentOp) and self._profitability(inner):
                    _round(inner)

    def _profitability(self, op: RecurrentOp) -> bool:
        weight = op.weight.owner
        if not isinstance(weight, ConstantOp) or not set(self.exact).isdisjoint(node_names(op)):
            return False
        _, size, width = shape_of(op.weight)
        waits = sizes_of(op.data)[2] == 1 and 4 * size * width > _CACHE
        return waits and tensor_type(op.weight).element_type == f32 and fills_panels(width)


def _round(op: RecurrentOp) -> None:
    weight = op.weight.owner
    assert isinstance(weight, ConstantOp)
    dtype = numpy_dtype(bf16)
    content = derived_array("rounded", [weight.array], lambda: weight.array.astype(dtype))
    rounded = ConstantOp.of(weight.weight.name, content)
    rounded.location = weight.location
    Rewriter.insert_op(rounded, InsertPoint.before(op))
    op.operands[1] = rounded.output
    weight.erase_if_unused()
