"""Handover of regions to the next targets, if a backend cannot run them or they do not pay
there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from byoc_mlir.abi import COMPILER
from byoc_mlir.dialects.byoc import WEIGHT_GROWTH
from byoc_mlir.transforms.inline_partitions import (
    dissolve_composites,
    inline_regions,
    note_reasons,
)
from byoc_mlir.transforms.partition_for import PartitionFor


def hand_on(
    module: ModuleOp, reasons: Mapping[FuncOp, str], context: Context, targets: Sequence[str]
) -> None:
    """Partitions outlined regions for other targets; ops that no target takes are inlined into the
    callers.

    Args:
        module: the module that holds the regions and their callers.
        reasons: why each region leaves its backend; the reason is kept on ops that no target takes.
        context: xDSL context for the passes.
        targets: the targets in order of preference.
    """
    note_reasons(reasons)
    for region in reasons if targets else ():
        _partition(module, region, context, targets)
    inline_regions(module, reasons)


def _partition(module: ModuleOp, region: FuncOp, context: Context, targets: Sequence[str]) -> None:
    """Partitions a region, which is a host function from now on, and outlines its parts."""
    del region.attributes[COMPILER]
    growth = region.attributes.get(WEIGHT_GROWTH)
    dissolve_composites(region.body.block)
    following = region.next_op
    region.detach()
    part = ModuleOp([region])
    PartitionFor(tuple(targets)).apply(context, part)
    for function in list(part.body.block.ops):
        function.detach()
        if growth is not None:
            function.attributes[WEIGHT_GROWTH] = growth
        if following is None:
            module.body.block.add_op(function)
        else:
            module.body.block.insert_op_before(function, following)
