"""The executable of a model that the cache knows."""

from __future__ import annotations

from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.cache.cached_specialiser import CachedSpecialiser
from byoc_mlir.compiler.cache.cached_stages import CachedStages
from byoc_mlir.compiler.execution.ahead import compile_ahead
from byoc_mlir.runtime.executable import Executable


def cached_executable(cached: CachedModel) -> Executable | None:
    """A model as the cache has it, where what is not there is compiled; `None` where it does not
    know the model.
    """
    entry = cached.read_entry()
    if entry is None:
        return CachedStages(cached).executable()
    specialiser = CachedSpecialiser(cached, entry)
    return compile_ahead(entry.inputs, entry.outputs, specialiser, cached.request.limits)
