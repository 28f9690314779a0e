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


PASSES: dict[str, Callable[[], type[ModulePass]]] = {
    "check-legal": _check_legal,
    "convert-to-llvm": _convert_to_llvm,
}
"""The passes of this folder, by name; imported when first used."""
