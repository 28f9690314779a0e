"""The pass `convert-relay-to-linalg`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.control import ControlOp
from byoc_mlir.dialects.relay.families import OpTable
from byoc_mlir.dialects.relay.shape import asked
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.limits import in_time
from byoc_mlir.lowering import relay_to_linalg
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowering

_LOWERINGS = OpTable[Lowering](
    relay_to_linalg.__name__,
    {
        "logic": ("elementwise",),
        "ml": ("coupling", "trees"),
        "nn": ("elementwise", "nn"),
        "vision": ("sampling", "suppression", "vision"),
    },
)

_KEPT = (ConstantOp, ControlOp)
"""Ops that `bufferize` handles: their operands and results become buffers like all tensors."""


class ConvertRelayToLinalg(ModulePass):
    """Lowers `relay` ops to `linalg.generic` on tensors; constants and control flow stay.

    Functions of a backend (`byoc.compiler`) stay unchanged. Shapes must be static.

    ```mlir
    %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    ```
    becomes
    ```mlir
    %e = tensor.empty() : tensor<4xf32>
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) attrs = {doc = "relu"} {
    ^bb0(%in: f32, %out: f32):
      %zero = arith.constant 0.0 : f32
      %max = arith.maximumf %in, %zero : f32
      linalg.yield %max : f32
    } -> tensor<4xf32>
    ```
    """

    name = "convert-relay-to-linalg"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with asking_of(op):
            for block in host_blocks(op):
                for inner in in_time(block.ops):
                    if isinstance(inner, RelayOp) and not isinstance(inner, _KEPT):
                        _lower(inner)


def _lower(op: RelayOp) -> None:
    lowering = _LOWERINGS.get(type(op))
    if lowering is None:
        raise PassFailedException(
            f"{op.name} at {op.location} has no lowering on the host; let a backend take it"
        )
    asked().reason = ", ".join(node_names(op))
    results = lowering(op, LinalgBuilder(op))
    constants = {value.owner for value in op.operands if isinstance(value.owner, ConstantOp)}
    Rewriter.replace_op(op, (), results)
    for constant in constants:  # what a lowering packed is not kept twice
        constant.erase_if_unused()
