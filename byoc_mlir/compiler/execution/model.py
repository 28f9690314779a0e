"""From a request to an executable: the node of the execution plan that the model becomes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from onnx import ModelProto

from byoc_mlir.artifact import write
from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.execution.kind import Compilation, Maker, ModelKind
from byoc_mlir.compiler.execution.programs import compiler_imported, leaf_of_source
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.source import Source, read_source
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.stages.suggestions import (
    has_loops,
    may_have_stages,
    may_have_strings,
)
from byoc_mlir.frontend.structures import is_structured
from byoc_mlir.limits import limited
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.execution.node import LoadedNode

if TYPE_CHECKING:
    from byoc_mlir.compiler.execution.split import SplitModel


def _structures() -> Maker:
    from byoc_mlir.compiler.execution.structured import with_structures

    return with_structures


def _strings() -> Maker:
    from byoc_mlir.compiler.execution.strings import around_strings

    return around_strings


def _loops() -> Maker:
    from byoc_mlir.compiler.execution.loops import around_loops

    return around_loops


def _stages() -> Maker:
    from byoc_mlir.compiler.execution.split import in_stages

    return in_stages


KINDS: tuple[ModelKind, ...] = (
    ModelKind(is_structured, _structures),
    ModelKind(may_have_strings, _strings),
    ModelKind(has_loops, _loops),
    ModelKind(may_have_stages, _stages),
)
"""Kinds of models that are no leaf, in the order in which they are tried. For the parts of a model,
only the kinds after its own are tried. Structures come first, since the other kinds know only
tensors. Strings come next, since the compiler has no type for them, and splitting for the other
kinds infers types. Loops come before segments: a loop that runs iteration by iteration has shapes
that depend on values inside, where a model is not split."""


def compile_model(request: Request, cached: CachedModel | None = None) -> Executable:
    """Compiles a model; arguments and errors are the same as for `compile`.

    Args:
        cached: the model's handle in the cache, also for its parts.
    """
    with limited(request.limits):  # one time for reading and compiling
        return _executable(*read_model(request), cached)


@compiler_imported()
def read_model(request: Request) -> tuple[Source, CompileOptions]:
    """Reads the model of a request."""
    with ir_boundary("read"), limited(request.limits):
        options = CompileOptions.of(request)
        source = read_source(request.model, request.sizes, trusted=request.trusted)
        if not options.resident:
            return source, options
        from byoc_mlir.compiler.resident import with_residents

        return with_residents(source, options), options


def read_split(request: Request) -> tuple[SplitModel, CompileOptions]:
    """Reads and splits the model of a request that the cache lists as split into segments."""
    from byoc_mlir.compiler.execution.split import SplitModel

    with ir_boundary("read"), limited(request.limits):
        source, options = read_model(request)
        split = SplitModel.of(source, options)
        assert split is not None, "the cache lists the model as split into segments"
        return split, options


def _executable(source: Source, options: CompileOptions, cached: CachedModel | None) -> Executable:
    with ir_boundary("read"), limited(options.limits):
        node = _node(source, Compilation(options, cached), KINDS)
    remake = None if node.is_complete else partial(_executable, source, options, cached)
    return Executable(node, write, remake)


def _check_whole(options: CompileOptions) -> None:
    """Checks that a model that runs in parts has all inputs and outputs on the host."""
    if options.resident:
        raise InvalidModelError(
            f"resident keeps {', '.join(options.resident)} on a device, but the model runs in"
            " parts, which pass tensors on the host; omit resident"
        )


def _node(source: Source, compilation: Compilation, kinds: tuple[ModelKind, ...]) -> LoadedNode:
    """Returns the node of the execution plan for a model: of the first kind that applies, else a
    leaf.
    """
    part = replace(compilation, is_part=True)
    for number, kind in enumerate(kinds, 1):
        later = kinds[number:]
        if not isinstance(source.model, ModelProto) or not kind.suggested_by(source.model):
            continue
        node = kind.load()(source, compilation, lambda one, later=later: _node(one, part, later))
        if node is not None:
            _check_whole(compilation.options)
            return node
    place = compilation.cached
    if place is not None and compilation.is_part:
        place = place.part(source.model)
    return leaf_of_source(source, compilation.options, place)
