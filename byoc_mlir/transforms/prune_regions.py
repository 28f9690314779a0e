"""The pass `prune-regions`: returns regions to the host that are too small to pay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import CompositeOp, region_compiler
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.transforms.inline_partitions import inline_partitions
from byoc_mlir.transforms.work import estimated_work


@dataclass(frozen=True)
class PruneRegions(ModulePass):
    """Inlines regions without any of the `heavy` ops, and regions of less work than `min_work`.

    `heavy` lists Relay names (`nn.conv2d`); if it is empty, the kinds of ops do not matter.
    `min_work` is a number of arithmetic operations. The ops get a `byoc.reason` that starts with
    `demoted: `.

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = func.call @dnnl_main_0(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }
    func.func private @dnnl_main_0(%x: tensor<4xf32>) -> tensor<4xf32>
        attributes {byoc.compiler = "dnnl"} {
      %0 = relay.nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }
    ```

    becomes, with `min-work=1000`,

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = relay.nn.relu %x {byoc.reason = "demoted: …"} : (tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }
    ```
    """

    name = "prune-regions"

    heavy: tuple[str, ...] = ()
    min_work: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        prune_regions(op, self._reason)

    def _reason(self, region: FuncOp) -> str | None:
        names = {relay_name(op) for op in computations(region)}
        if self.heavy and names.isdisjoint(self.heavy):
            return f"the region has none of {', '.join(self.heavy)}"
        work = estimated_work_of(region)
        if work < self.min_work:
            return f"the region does about {work} operations, less than {self.min_work}"
        return None


DEMOTED = "demoted: "
"""Prefix of the reason of ops that were returned to the host."""


def prune_regions(
    module: ModuleOp,
    refuse: Callable[[FuncOp], str | None],
    send: Callable[[ModuleOp, Mapping[FuncOp, str]], None] = inline_partitions,
) -> list[str]:
    """Inlines every outlined region for which `refuse` gives a reason, so that the host runs it.

    Args:
        module: the partitioned module.
        refuse: function that returns why a region is inlined, or `None`.
        send: function that inlines regions; its second argument maps each region to the reason.

    Returns:
        The symbols of the removed regions. The `byoc.reason` of their ops is `demoted: ` and the
        reason.
    """
    reasons = {
        op: f"{DEMOTED}{reason}"
        for op in module.ops
        if isinstance(op, FuncOp) and region_compiler(op) is not None
        if (reason := refuse(op)) is not None
    }
    pruned = [region.sym_name.data for region in reasons]
    send(module, reasons)
    return pruned


def estimated_work_of(region: FuncOp) -> int:
    """Returns the arithmetic operations of an outlined region, as estimated by `estimated_work`."""
    return sum(map(estimated_work, computations(region)))


def computations(region: FuncOp) -> Iterator[Operation]:
    """Yields the ops of an outlined region; for each composite, the ops in its body."""
    for op in region.body.block.ops:
        if isinstance(op, CompositeOp):
            yield from op.ops()
        else:
            yield op
