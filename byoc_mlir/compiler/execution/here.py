"""A model compiled in this process."""

from __future__ import annotations

from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.garbage import modules_imported
from byoc_mlir.compiler.request import Request
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.system.memory import return_freed_memory


def compile_here(request: Request, cached: CachedModel | None) -> Executable:
    """As `compile_model`. The compiler is imported only now: most of a second, which a process does
    not pay whose models come from the cache, or from another process.
    """
    with modules_imported():
        from byoc_mlir.compiler.execution.model import compile_model

    executable = compile_model(request, cached)
    return_freed_memory()
    return executable
