"""Compilation of a model in this process."""

from __future__ import annotations

from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.garbage import modules_imported
from byoc_mlir.compiler.request import Request
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.system.memory import return_freed_memory


def compile_here(request: Request, cached: CachedModel | None) -> Executable:
    """Compiles a model like `compile_model`, but imports the compiler only now.

    The import takes most of a second. A process whose models come from the cache, or from another
    process, does not need it.
    """
    with modules_imported():
        from byoc_mlir.compiler.execution.model import compile_model

    executable = compile_model(request, cached)
    return_freed_memory()
    return executable
