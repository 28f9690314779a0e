"""From a request to an executable, of the kind that the model needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.cache.cached_specialiser import cached_specialiser
from byoc_mlir.compiler.cache.cached_stages import CachedStages
from byoc_mlir.compiler.execution.ahead import compile_ahead
from byoc_mlir.compiler.execution.loops import compile_around_loops
from byoc_mlir.compiler.execution.staged import CutModel, compile_in_stages
from byoc_mlir.compiler.execution.strings import compile_around_strings
from byoc_mlir.compiler.execution.structured import compile_structured
from byoc_mlir.compiler.garbage import modules_imported
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.source import Source, read_source
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.limits import limited
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.executables.specialising import Specialiser
from byoc_mlir.runtime.program import Array


def compile_model(request: Request, cached: CachedModel | None = None) -> Executable:
    """Compiles a model; arguments and errors are those of `compile`.

    Args:
        cached: puts the model into the cache, or the parts that it is compiled in.
    """
    with ir_boundary("read"), limited(request.limits):
        options, source = _read(request)

        def compile_part(source: Source) -> Executable:
            return _compile_whole(source, options, cached and cached.part(source.model))

        def compile_parts(source: Source) -> Executable:
            staged = compile_in_stages(source, lambda _, stage: compile_part(stage))
            return staged or compile_part(source)

        def compile_tensors(source: Source) -> Executable:
            return compile_around_strings(source, options, compile_parts) or compile_parts(source)

        return (
            compile_structured(source, compile_tensors)
            or compile_around_strings(source, options, compile_parts)
            or compile_around_loops(source, compile_parts)
            or _compile_in_stages(source, options, cached and CachedStages(cached))
            or _compile_whole(source, options, cached)
        )


def compile_stage(
    request: Request, number: int, arrays: Mapping[str, Array] | None, kept: CachedStages
) -> Executable:
    """Compiles one stage of a model that runs in several, and puts it into the cache.

    Args:
        number: of the stage, counts from 0.
        arrays: what its inputs are like; `None` for the first stage, which has the model's own.
    """
    with ir_boundary("read"), limited(request.limits):
        options, stage = _read_stage(request, number, arrays)
        return _compile_whole(stage, options, kept.place(number, stage.model))


def specialiser(request: Request) -> Specialiser:
    """What compiles the model of a request for given inputs."""
    with ir_boundary("read"), limited(request.limits):
        options, source = _read(request)
        return _model_specialiser(source, options)


def stage_specialiser(
    request: Request, number: int, arrays: Mapping[str, Array] | None
) -> Specialiser:
    """As `specialiser`, of one stage of the model; arguments are those of `compile_stage`."""
    with ir_boundary("read"), limited(request.limits):
        options, stage = _read_stage(request, number, arrays)
        return _model_specialiser(stage, options)


def _compile_whole(
    source: Source, options: CompileOptions, place: CachedModel | None
) -> Executable:
    """The executable of a model that runs in one piece, `place` is its own in the cache."""
    make = partial(_model_specialiser, source, options)
    found = make() if place is None else cached_specialiser(place, source, options, make)
    return compile_ahead(source.inputs, source.outputs, found, options.limits)


def _compile_in_stages(
    source: Source, options: CompileOptions, kept: CachedStages | None
) -> Executable | None:
    """The executable of a model that runs in stages, `None` for other models."""
    if source.external_files:
        kept = None  # where the model is cut depends on them

    def compile_numbered(number: int, stage: Source) -> Executable:
        place = None if kept is None else kept.place(number, stage.model)
        return _compile_whole(stage, options, place)

    remake = partial(_compile_in_stages, source, options, None)
    executable = compile_in_stages(source, compile_numbered, remake)
    if executable is not None and kept is not None:
        kept.keep(executable)
    return executable


@modules_imported()
def _model_specialiser(source: Source, options: CompileOptions) -> Specialiser:
    """What compiles a model. The compiler is imported only here: a model whose parts are all in the
    cache does not pay for it.
    """
    from byoc_mlir.compiler.specialise import ModelSpecialiser

    return ModelSpecialiser(source, options)


@modules_imported()
def _read(request: Request) -> tuple[CompileOptions, Source]:
    return CompileOptions.of(request), read_source(
        request.model, request.sizes, trusted=request.trusted
    )


def _read_stage(
    request: Request, number: int, arrays: Mapping[str, Array] | None
) -> tuple[CompileOptions, Source]:
    options, source = _read(request)
    cut = CutModel.of(source)
    assert cut is not None, "the cache says that the model runs in stages"
    return options, cut.stage(number, arrays)
