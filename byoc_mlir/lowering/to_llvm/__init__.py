"""From memref, scf, arith, math and vector down to the `llvm` dialect."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass


def _check_legal() -> type[ModulePass]:
    from byoc_mlir.lowering.check_legal import CheckLegal

    return CheckLegal


def _convert_to_llvm() -> type[ModulePass]:
    from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM

    return ConvertToLLVM


def _expand_math() -> type[ModulePass]:
    from byoc_mlir.lowering.to_llvm.expand_math import ExpandMath

    return ExpandMath


def _expand_memref_copy() -> type[ModulePass]:
    from byoc_mlir.lowering.to_llvm.expand_memref_copy import ExpandMemrefCopy

    return ExpandMemrefCopy


def _lower_scf_to_cf() -> type[ModulePass]:
    from byoc_mlir.lowering.to_llvm.lower_scf_to_cf import LowerScfToCf

    return LowerScfToCf


def _outline_parallel() -> type[ModulePass]:
    from byoc_mlir.lowering.to_llvm.outline_parallel import OutlineParallel

    return OutlineParallel


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "check-legal": _check_legal,
    "convert-to-llvm": _convert_to_llvm,
    "expand-math": _expand_math,
    "expand-memref-copy": _expand_memref_copy,
    "lower-scf-to-cf": _lower_scf_to_cf,
    "outline-parallel": _outline_parallel,
}
"""The passes of this folder, by name; imported when first used."""
