"""Kinds of models; each kind becomes another node of the execution plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from onnx import ModelProto

from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.source import Source
from byoc_mlir.runtime.execution.node import LoadedNode


@dataclass(frozen=True)
class Compilation:
    """Settings of a compilation, and the cache of its programs."""

    options: CompileOptions
    cached: CachedModel | None
    """The whole model in the cache; `None` if nothing is kept."""
    is_part: bool = False
    """True for a part of the model; the keys of its programs depend on the part's bytes."""


PartCompiler: TypeAlias = Callable[[Source], LoadedNode]
"""Function that compiles a part of a model; only later kinds are tried for the part."""

Maker: TypeAlias = Callable[[Source, Compilation, PartCompiler], LoadedNode | None]
"""Function that returns the node of an ONNX model, compiled as far as its inputs are known, or
`None` if the model is of another kind."""


@dataclass(frozen=True)
class ModelKind:
    """Kind of models, with the function that compiles them; it is imported for such models only."""

    suggested_by: Callable[[ModelProto], bool]
    """Cheap test: False if a model is certainly of another kind."""
    load: Callable[[], Maker]
