"""Passes from `relay` to `relay`: simplification and partitioning."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass


def _annotate_target() -> type[ModulePass]:
    from byoc_mlir.transforms.annotate_target import AnnotateTarget

    return AnnotateTarget


def _fold_batch_norm() -> type[ModulePass]:
    from byoc_mlir.transforms.fold_batch_norm import FoldBatchNorm

    return FoldBatchNorm


def _fold_constants() -> type[ModulePass]:
    from byoc_mlir.transforms.fold_constants import FoldConstants

    return FoldConstants


def _inline_partitions() -> type[ModulePass]:
    from byoc_mlir.transforms.inline_partitions import InlinePartitions

    return InlinePartitions


def _merge_compiler_regions() -> type[ModulePass]:
    from byoc_mlir.transforms.merge_compiler_regions import MergeCompilerRegions

    return MergeCompilerRegions


def _merge_composite() -> type[ModulePass]:
    from byoc_mlir.transforms.merge_composite import MergeComposite

    return MergeComposite


def _partition_for() -> type[ModulePass]:
    from byoc_mlir.transforms.partition_for import PartitionFor

    return PartitionFor


def _partition_graph() -> type[ModulePass]:
    from byoc_mlir.transforms.partition_graph import PartitionGraph

    return PartitionGraph


def _prune_regions() -> type[ModulePass]:
    from byoc_mlir.transforms.prune_regions import PruneRegions

    return PruneRegions


def _simplify() -> type[ModulePass]:
    from byoc_mlir.transforms.simplify import Simplify

    return Simplify


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "annotate-target": _annotate_target,
    "fold-batch-norm": _fold_batch_norm,
    "fold-constants": _fold_constants,
    "inline-partitions": _inline_partitions,
    "merge-compiler-regions": _merge_compiler_regions,
    "merge-composite": _merge_composite,
    "partition-for": _partition_for,
    "partition-graph": _partition_graph,
    "prune-regions": _prune_regions,
    "simplify": _simplify,
}
"""Pass name to a function that imports and returns the pass class."""
