"""The pass `fold-constants`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.locations import fused_location, node_names
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.evaluate import MAX_FOLDED_BYTES, can_be_folded, evaluate_op
from byoc_mlir.limits import in_time
from byoc_mlir.transforms.rewriting import (
    Array,
    constant_array,
    constant_name,
    erase_dead_ops,
    replace_op,
)


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Folds ops whose operands are all constants.

    ```mlir
    %a = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %b = relay.constant dense<3.0> : tensor<f32>
    %0 = relay.add %a, %b : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    // becomes
    %0 = relay.constant dense<[4.0, 5.0]> : tensor<2xf32>
    ```

    An op stays if its result is larger than `max_bytes` and larger than all its operands together,
    or if the bytes of a weight are not loaded.
    """

    name = "fold-constants"

    max_bytes: int = MAX_FOLDED_BYTES

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            self._fold_block(block)

    def _fold_block(self, block: Block) -> None:
        for op in in_time(block.ops):
            if not isinstance(op, RelayOp):
                continue
            arrays = [constant_array(operand) for operand in op.operands]
            known = [array for array in arrays if array is not None]
            if len(known) == len(arrays) and can_be_folded(op, known, self.max_bytes):
                _fold(op, known)
        erase_dead_ops(block)


def _fold(op: RelayOp, operands: list[Array]) -> None:
    name = constant_name(op, "_".join(node_names(op)) or "folded")
    sources = [one.owner for one in op.operands if isinstance(one.owner, ConstantOp)]
    location = fused_location([*sources, op])
    constants = [ConstantOp.of(name, array) for array in evaluate_op(op, operands)]
    for constant in constants:
        constant.location = location
    replace_op(op, constants, [constant.output for constant in constants])
