"""The pass `merge-equal-ops`."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay import RelayOp
from byoc_mlir.transforms.op_structure import properties_of

_RANDOM = "relay.random"


class MergeEqualOps(ModulePass):
    """Replaces each op that has the same operands and properties as an earlier op by that one.

    Branches, loops and random ops stay. Every layer of a language model computes the positions of
    the new tokens.

    ```mlir
    %0 = relay.cast %n {dtype = i64} : (tensor<i32>) -> tensor<i64>
    %1 = relay.cast %n {dtype = i64} : (tensor<i32>) -> tensor<i64>
    %2 = relay.add %0, %1 : (tensor<i64>, tensor<i64>) -> tensor<i64>
    // becomes
    %0 = relay.cast %n {dtype = i64} : (tensor<i32>) -> tensor<i64>
    %2 = relay.add %0, %0 : (tensor<i64>, tensor<i64>) -> tensor<i64>
    ```
    """

    name = "merge-equal-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            _merge(block)


def _merge(block: Block) -> None:
    known: dict[Hashable, Operation] = {}
    for op in tuple(block.ops):
        if not isinstance(op, RelayOp) or not op.IS_FOLDED or op.name.startswith(_RANDOM):
            continue
        key = (op.name, tuple(op.operands), tuple(op.result_types), properties_of(op))
        first = known.setdefault(key, op)
        if first is not op:
            first.location = fused_location((first, op))
            Rewriter.replace_op(op, (), first.results)
