"""The pass `inline-partitions`: undoes partitioning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.byoc import REASON, TIMES, CompositeOp, region_compiler
from byoc_mlir.limits import in_time
from byoc_mlir.transforms.blocks import is_constant, is_terminator


@dataclass(frozen=True)
class InlinePartitions(ModulePass):
    """Inlines outlined regions, and the composites in them, into their callers.

    `functions` names the regions; if it is empty, all regions are inlined.

    ```mlir
    func.func @main(%x: tensor<…>) -> tensor<…> {
      %0 = func.call @dnnl_main_0(%x) : (tensor<…>) -> tensor<…>
      func.return %0 : tensor<…>
    }
    func.func private @dnnl_main_0(%x: tensor<…>) -> tensor<…> attributes {byoc.compiler = "dnnl"} {
      %0 = relay.nn.relu %x : (tensor<…>) -> tensor<…>
      func.return %0 : tensor<…>
    }
    ```

    becomes

    ```mlir
    func.func @main(%x: tensor<…>) -> tensor<…> {
      %0 = relay.nn.relu %x : (tensor<…>) -> tensor<…>
      func.return %0 : tensor<…>
    }
    ```
    """

    name = "inline-partitions"

    functions: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        regions = {
            func.sym_name.data: func
            for func in op.walk()
            if isinstance(func, FuncOp) and region_compiler(func) is not None
        }
        unknown = [name for name in self.functions if name not in regions]
        if unknown:
            known = ", ".join(f"@{name}" for name in regions) or "none"
            raise PassFailedException(
                f"no outlined region is called @{', @'.join(unknown)}; there are {known}"
            )
        inline_regions(op, [regions[name] for name in self.functions or regions])


def inline_partitions(module: ModuleOp, reasons: Mapping[FuncOp, str]) -> None:
    """Inlines outlined regions into their callers and removes them.

    Args:
        module: the module with regions and callers; composites in the regions are replaced by their
            ops.
        reasons: why each region is inlined; its ops get the reason as `byoc.reason`, and the
            region's `byoc.times`.
    """
    note_reasons(reasons)
    inline_regions(module, reasons)


def note_reasons(reasons: Mapping[FuncOp, str]) -> None:
    """Writes each region's reason on its ops, as `byoc.reason`, and the region's `byoc.times`."""
    for region, reason in reasons.items():
        kept: dict[str, Attribute] = {REASON: StringAttr(reason)}
        if TIMES in region.attributes:
            kept[TIMES] = region.attributes[TIMES]
        for op in region.walk():
            if op is not region and not is_constant(op) and not is_terminator(op):
                op.attributes |= kept


def inline_regions(module: ModuleOp, regions: Iterable[FuncOp]) -> None:
    """Inlines outlined regions into their callers, and replaces the composites in them by their
    ops.
    """
    by_name = {region.sym_name.data: region for region in regions}
    for name, region in by_name.items():
        if not region.body.blocks:
            raise PassFailedException(f"region @{name} has no body, it is compiled already")
    calls = [
        op for op in module.walk() if isinstance(op, CallOp) and op.callee.string_value() in by_name
    ]
    for region in by_name.values():
        dissolve_composites(region.body.block)
    for call in calls:
        region = by_name[call.callee.string_value()]
        _inline(call, region.body.clone().detach_block(0), call.arguments)
    for region in by_name.values():
        Rewriter.erase_op(region)


def dissolve_composites(block: Block) -> None:
    """Replaces each composite of a block by the ops of its body."""
    for op in in_time(block.ops):
        if isinstance(op, CompositeOp):
            body = op.body.detach_block(0)
            if (reason := op.attributes.get(REASON)) is not None:
                for inner in body.ops:
                    inner.attributes.setdefault(REASON, reason)
            _inline(op, body, op.inputs)


def _inline(op: Operation, body: Block, arguments: Iterable[SSAValue]) -> None:
    """Replaces `op` by the ops of `body`, whose terminator yields the results."""
    terminator = body.last_op
    assert terminator is not None
    Rewriter.inline_block(body, InsertPoint.before(op), tuple(arguments))
    Rewriter.replace_op(op, (), terminator.operands)
    Rewriter.erase_op(terminator)
