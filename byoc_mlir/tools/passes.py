"""Every pass of the compiler, by name."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.passes import ModulePass

from byoc_mlir import lowering, transforms


def all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Pass name to a function that imports and returns the pass class."""
    return {**transforms.PASSES, **lowering.PASSES}
