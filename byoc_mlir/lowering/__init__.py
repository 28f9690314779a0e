"""The host compiler: from `relay` to object code."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass

from byoc_mlir.lowering import to_llvm


def _add_entry_points() -> type[ModulePass]:
    from byoc_mlir.lowering.add_entry_points import AddEntryPoints

    return AddEntryPoints


def _bufferize() -> type[ModulePass]:
    from byoc_mlir.lowering.bufferize import Bufferize

    return Bufferize


def _convert_linalg_to_loops() -> type[ModulePass]:
    from byoc_mlir.lowering.linalg_to_loops.convert_linalg_to_loops import ConvertLinalgToLoops

    return ConvertLinalgToLoops


def _convert_relay_to_linalg() -> type[ModulePass]:
    from byoc_mlir.lowering.relay_to_linalg.convert_relay_to_linalg import ConvertRelayToLinalg

    return ConvertRelayToLinalg


def _fuse_elementwise() -> type[ModulePass]:
    from byoc_mlir.lowering.fuse_elementwise import FuseElementwise

    return FuseElementwise


def _lower_small_types() -> type[ModulePass]:
    from byoc_mlir.lowering.lower_small_types import LowerSmallTypes

    return LowerSmallTypes


def _mark_cold_functions() -> type[ModulePass]:
    from byoc_mlir.lowering.mark_cold_functions import MarkColdFunctions

    return MarkColdFunctions


def _outline_kernels() -> type[ModulePass]:
    from byoc_mlir.lowering.outline_kernels import OutlineKernels

    return OutlineKernels


def _pack_weights() -> type[ModulePass]:
    from byoc_mlir.lowering.pack_weights import PackWeights

    return PackWeights


def _parametrise_kernels() -> type[ModulePass]:
    from byoc_mlir.lowering.parametrise_kernels import ParametriseKernels

    return ParametriseKernels


def _plan_buffers() -> type[ModulePass]:
    from byoc_mlir.lowering.plan_buffers import PlanBuffers

    return PlanBuffers


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "add-entry-points": _add_entry_points,
    "bufferize": _bufferize,
    "convert-linalg-to-loops": _convert_linalg_to_loops,
    "convert-relay-to-linalg": _convert_relay_to_linalg,
    "fuse-elementwise": _fuse_elementwise,
    "lower-small-types": _lower_small_types,
    "mark-cold-functions": _mark_cold_functions,
    "outline-kernels": _outline_kernels,
    "pack-weights": _pack_weights,
    "parametrise-kernels": _parametrise_kernels,
    "plan-buffers": _plan_buffers,
    **to_llvm.PASSES,
}
"""The passes of this folder, by name; imported when first used."""
