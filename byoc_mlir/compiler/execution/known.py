"""Models in the cache: loaded without reading the model; other models and missing programs are
compiled.

Nothing here imports the compiler before it is needed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from byoc_mlir.artifact import write
from byoc_mlir.compiler.cache.cached_model import CachedModel, ModelEntry
from byoc_mlir.compiler.cache.stored_programs import StoredPrograms
from byoc_mlir.compiler.execution.programs import ModelPrograms, compiler_imported, loaded_leaf
from byoc_mlir.compiler.request import Request
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.plan import Staged
from byoc_mlir.runtime.system.memory import return_freed_memory

if TYPE_CHECKING:
    from byoc_mlir.compiler.execution.split import SplitModel
    from byoc_mlir.compiler.options import CompileOptions
    from byoc_mlir.compiler.source import Source


def known_model(cached: CachedModel) -> Executable | None:
    """Returns a model from the cache, or `None` if the cache does not have it."""
    entry = cached.read_entry()
    if entry is None:
        return None
    node = _node(cached, entry)
    return Executable(node, write, None if node.is_complete else partial(compile_cached, cached))


def compile_cached(cached: CachedModel) -> Executable:
    """Returns a model from the cache, or compiles it and adds it to the cache.

    Raises:
        ByocError: as for `compile`.
    """
    return known_model(cached) or compile_here(cached.request, cached)


def _node(cached: CachedModel, entry: ModelEntry) -> LoadedNode:
    request, stored = cached.request, StoredPrograms(cached, entry)
    if not entry.stages:
        programs = ModelPrograms(partial(_read, request), stored)
        return loaded_leaf(entry.inputs, entry.outputs, programs, request)
    from byoc_mlir.compiler.execution.stages import ModelStages, loaded_stages

    stages = ModelStages(partial(_split, request), cached, entry)
    return loaded_stages(Staged(entry.inputs, entry.outputs, entry.stages), stages)


def _read(request: Request) -> tuple[Source, CompileOptions]:
    from byoc_mlir.compiler.execution.model import read_model  # and so the compiler

    return read_model(request)


def _split(request: Request) -> tuple[SplitModel, CompileOptions]:
    from byoc_mlir.compiler.execution.model import read_split  # and so the compiler

    return read_split(request)


def compile_here(request: Request, cached: CachedModel | None) -> Executable:
    """Compiles a model like `compile_model`, but imports the compiler only now.

    The import takes most of a second. A process whose models come from the cache, or from another
    process, does not need it.
    """
    with compiler_imported():
        from byoc_mlir.compiler.execution.model import compile_model

    executable = compile_model(request, cached)
    return_freed_memory()
    return executable
