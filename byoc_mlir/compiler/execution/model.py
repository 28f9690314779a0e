"""From a request to an executable, of the kind that the model needs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from byoc_mlir.compiler.execution.ahead import compile_ahead
from byoc_mlir.compiler.execution.staged import compile_in_stages
from byoc_mlir.compiler.execution.strings import compile_around_strings
from byoc_mlir.compiler.execution.structured import compile_structured
from byoc_mlir.compiler.garbage import modules_imported
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.source import Source, read_source
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.limits import limited
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.specialising import Specialiser

if TYPE_CHECKING:
    from byoc_mlir.compiler.cache.cached_model import CachedModel


def compile_model(request: Request, cached: CachedModel | None = None) -> Executable:
    """Compiles a model; arguments and errors are those of `compile`.

    Args:
        cached: puts the model into the cache; of one that runs in stages, takes or gives sequences
            or optionals, or works on strings, the parts that are compiled.
    """
    with ir_boundary("read"), limited(request.limits):
        options, source = _read(request)

        def compile_whole(source: Source) -> Executable:
            make = partial(_model_specialiser, source, options)
            kept = make() if cached is None else cached.keep_part(source, options, make)
            return compile_ahead(source.inputs, source.outputs, kept, request.limits)

        def compile_part(source: Source) -> Executable:
            return compile_in_stages(source, compile_whole) or compile_whole(source)

        def compile_tensors(source: Source) -> Executable:
            return compile_around_strings(source, options, compile_part) or compile_part(source)

        special = (
            compile_structured(source, compile_tensors)
            or compile_around_strings(source, options, compile_part)
            or compile_in_stages(source, compile_whole)
        )
        if special is not None:
            return special
        make = partial(_model_specialiser, source, options)
        kept = make() if cached is None else cached.keep(source, options, make)
        return compile_ahead(source.inputs, source.outputs, kept, request.limits)


def specialiser(request: Request) -> Specialiser:
    """What compiles the model of a request for given inputs."""
    with ir_boundary("read"), limited(request.limits):
        options, source = _read(request)
        return _model_specialiser(source, options)


@modules_imported()
def _model_specialiser(source: Source, options: CompileOptions) -> Specialiser:
    """What compiles a model. The compiler is imported only here: a model whose parts are all in the
    cache does not pay for it.
    """
    from byoc_mlir.compiler.specialise import ModelSpecialiser

    return ModelSpecialiser(source, options)


@modules_imported()
def _read(request: Request) -> tuple[CompileOptions, Source]:
    return CompileOptions.of(request), read_source(request.model, request.sizes)
