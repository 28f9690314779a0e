"""The pass `merge-idempotent-ops`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay.elementwise import AbsOp, CeilOp, FloorOp, RoundOp, SignOp
from byoc_mlir.limits import in_time

_IDEMPOTENT = (AbsOp, CeilOp, FloorOp, RoundOp, SignOp)


class MergeIdempotentOps(ModulePass):
    """Replaces an op whose operand is the result of the same op by that result.

    ```mlir
    %0 = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = relay.abs %0 : (tensor<4xf32>) -> tensor<4xf32>
    %2 = relay.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
    // becomes
    %0 = relay.abs %x : (tensor<4xf32>) -> tensor<4xf32>
    %2 = relay.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "merge-idempotent-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            for inner in in_time(block.ops):
                if isinstance(inner, _IDEMPOTENT) and type(inner.data.owner) is type(inner):
                    Rewriter.replace_op(inner, (), [inner.data])
