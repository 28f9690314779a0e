"""Kinds of models: what is asked of a model to learn which node of a plan it becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.source import Source
from byoc_mlir.runtime.execution.node import LoadedNode


@dataclass(frozen=True)
class Compilation:
    """Settings of a compilation, and where the cache keeps what it makes."""

    options: CompileOptions
    cached: CachedModel | None
    """The whole model in the cache; `None` where nothing is kept."""
    is_part: bool = False
    """True for a part of the model, whose programs are found by its own bytes."""


PartCompiler: TypeAlias = Callable[[Source], LoadedNode]
"""Compiles a part of a model; it is of a later kind."""

Kind: TypeAlias = Callable[[Source, Compilation, PartCompiler], LoadedNode | None]
"""Returns the node of a model, compiled as far as its inputs are known; `None` where it is of
another kind."""
