"""The stages of a compilation in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.abi import ARENA_BYTES, CONTEXT_SLOTS, STATE_SLOTS, THREADS_SYMBOL, weight_symbol
from byoc_mlir.backends import Backend, get_backends
from byoc_mlir.backends.generate import RegionCode
from byoc_mlir.backends.op_names import unknown_ops
from byoc_mlir.compiler.backend_passes import run_module_passes
from byoc_mlir.compiler.denormals import warn_of_denormals
from byoc_mlir.compiler.garbage import collect_weights, collection_paused
from byoc_mlir.compiler.link import (
    defined_symbols,
    external_functions,
    external_globals,
    join_modules,
)
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.placement import build_report, check_fallback
from byoc_mlir.compiler.progress import Stages
from byoc_mlir.compiler.pruning import prune as prune_module
from byoc_mlir.compiler.regions import declare_regions, generate_regions
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.safety_net import targets_with_net
from byoc_mlir.compiler.source import Shapes, Source, Values, read_source
from byoc_mlir.compiler.staged import compile_in_stages
from byoc_mlir.compiler.strings import compile_around_strings
from byoc_mlir.compiler.structured import compile_structured
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.dialects.relay.constant import held_bytes
from byoc_mlir.errors import InputValuesNeededError
from byoc_mlir.frontend.model import ImportedModel
from byoc_mlir.limits import current_limits, limited
from byoc_mlir.lowering.host_pipeline import lower_host, run_passes, run_verified
from byoc_mlir.lowering.llvm_ir.codegen import emit_object
from byoc_mlir.lowering.mark_cold_functions import MarkColdFunctions
from byoc_mlir.lowering.region_calls import int_attribute
from byoc_mlir.lowering.shared_functions import separate_functions
from byoc_mlir.lowering.shared_kernels import KernelObject, SeparatedKernels, SharedKernels
from byoc_mlir.runtime import Executable, Program
from byoc_mlir.runtime.cpu import Cpu
from byoc_mlir.runtime.executable import Specialiser
from byoc_mlir.runtime.libraries import find_openmp
from byoc_mlir.runtime.program import (
    Array,
    ObjectCode,
    SharedLibrary,
    TensorSpec,
)
from byoc_mlir.runtime.structured import FlatExecutable
from byoc_mlir.tensors import TensorInfo
from byoc_mlir.transforms.fold_batch_norm import FoldBatchNorm
from byoc_mlir.transforms.fold_constants import FoldConstants
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.simplify import Simplify

MAX_VALUE_ELEMENTS = 4096
"""Inputs of up to this size are compiled in where shapes depend on their values. Larger ones are
data, and the model would be compiled again for every run."""

CANONICALISATION: tuple[ModulePass, ...] = (
    FoldConstants(),
    Simplify(),
    FoldBatchNorm(),
    FoldConstants(),
    Simplify(),
)


Keep: TypeAlias = Callable[[Source, CompileOptions, Specialiser], Specialiser]


def compile_model(request: Request, keep: Keep | None = None) -> Executable:
    """Compiles a model; arguments and errors are those of `compile`.

    Args:
        keep: what puts the model into the cache. Not kept are models that run in stages, or take
            or give sequences or optionals, or work on strings.
    """
    with ir_boundary("read"), limited(request.limits):
        options = _options(request)
        source = read_source(request.model)
        return _compile_source(source, options, keep)


def _compile_source(source: Source, options: CompileOptions, keep: Keep | None) -> Executable:
    def compile_source(source: Source) -> Executable:
        return Executable(source.inputs, source.outputs, ModelSpecialiser(source, options))

    def compile_part(source: Source) -> Executable:
        return compile_in_stages(source, compile_source) or compile_source(source)

    def compile_flat(source: Source) -> Executable:
        flat = FlatExecutable(source.inputs, source.outputs, ModelSpecialiser(source, options))
        return compile_in_stages(source, compile_source) or flat

    special = (
        compile_structured(source, compile_flat)
        or compile_around_strings(source, options, compile_part)
        or compile_in_stages(source, compile_source)
    )
    if special is not None:
        return special
    compiler = ModelSpecialiser(source, options)
    kept = compiler if keep is None else keep(source, options, compiler)
    return Executable(source.inputs, source.outputs, kept)


def specialiser(request: Request) -> Specialiser:
    """What compiles the model of a request for given inputs."""
    with ir_boundary("read"), limited(request.limits):
        return ModelSpecialiser(read_source(request.model), _options(request))


def _options(request: Request) -> CompileOptions:
    return CompileOptions.of(
        request.targets,
        request.threads,
        request.precision,
        request.fallback,
        request.backend_options,
        request.prune,
        request.denormals,
        request.limits,
    )


class ModelSpecialiser:
    """Compiles a model for given inputs; remembers which values shapes depend on."""

    def __init__(self, source: Source, options: CompileOptions):
        self._source = source
        self._options = options
        self.value_inputs: tuple[str, ...] = ()
        is_fixed = all(info.is_static for info in source.inputs)
        self._kernels = None if is_fixed else SharedKernels()

    def __reduce__(self) -> tuple[Any, ...]:
        return ModelSpecialiser, (self._source, self._options)

    def specialise(self, arrays: Mapping[str, Array]) -> Program:
        """The program for inputs of these shapes, with the values that shapes depend on."""
        shapes = {name: array.shape for name, array in arrays.items()}
        while True:
            values = {name: arrays[name].copy() for name in self.value_inputs}
            try:
                return build_program(self._source, shapes, values, self._options, self._kernels)
            except InputValuesNeededError as error:
                if any(arrays[name].size > MAX_VALUE_ELEMENTS for name in error.inputs):
                    raise
                self.value_inputs = tuple(sorted({*self.value_inputs, *error.inputs}))

    def specialise_shapes(self, shapes: Shapes) -> Program:
        """The program for inputs of these shapes, whatever their values."""
        return build_program(self._source, shapes, {}, self._options, self._kernels)


@collection_paused()
def build_program(
    source: Source,
    shapes: Shapes,
    values: Values,
    options: CompileOptions,
    kernels: SharedKernels | None = None,
) -> Program:
    """Compiles a model for one set of input shapes and values; raises what `compile` raises.

    Args:
        kernels: those that the model's other shapes left; the new ones join them.
    """
    stages = Stages()
    with limited(options.limits), stages.shown():
        with stages.stage("import"):
            imported = source.bind(shapes, values)
            if options.denormals == "keep":
                warn_of_denormals(imported.module)
            _check_outputs(imported.outputs)
        context = make_context()
        with stages.stage("canonicalise"):
            run_passes(context, imported.module, CANONICALISATION, stages.add_pass)
        return _compile_module(context, imported, options, stages, kernels)


def _compile_module(
    context: Context,
    imported: ImportedModel,
    options: CompileOptions,
    stages: Stages,
    kernels: SharedKernels | None,
) -> Program:
    module = imported.module
    targets = targets_with_net(module, options)
    backends = get_backends(targets)
    with stages.stage("partition"):
        misnamed = [
            f"backend '{backend.name}', {subject}: {problem}"
            for backend in backends
            for subject, problem in unknown_ops(backend)
        ]
        problems = [*misnamed, *run_module_passes(context, module, backends, options.fallback)]
        passes = (PartitionFor(targets=targets),)
        run_verified(context, module, passes, stages.add_pass)

    def build(part: ModuleOp) -> Program:
        alone = read_source(part).bind({}, {})
        return _build(context, alone, backends, replace(options, fallback="allow"), Stages())

    if options.prune != "off":
        with stages.stage("prune"):
            prune_module(module, options, backends, build)
    collect_weights(held_bytes())
    return _build(context, imported, backends, options, stages, problems, kernels)


def _build(
    context: Context,
    imported: ImportedModel,
    backends: Sequence[Backend],
    options: CompileOptions,
    stages: Stages,
    problems: Sequence[str] = (),
    kernels: SharedKernels | None = None,
) -> Program:
    """The program of a partitioned model; `problems` go into its report."""
    module = imported.module
    with stages.stage("generate"):
        regions = generate_regions(context, module, backends, options)
    report = build_report(imported, regions.codes, (*problems, *regions.warnings))
    check_fallback(report, options.fallback, options.targets)
    openmp = find_openmp()
    threads = options.threads if openmp is not None else 0
    with stages.stage("lower"):
        declare_regions(module, regions.codes)
        lowered = lower_host(
            context,
            module,
            threads=threads,
            outputs=len(imported.outputs),
            timing=stages.add_pass,
            shared=kernels,
            flush_denormals=options.denormals == "flush",
        )
        natives = [code.native for code in regions.codes]
        shared = [native.shared for native in natives if native.shared is not None]
        shared_symbols = {symbol for part in shared for symbol in defined_symbols(part)}
        join_modules(module, [native.module for native in natives], shared)
        run_passes(context, module, (MarkColdFunctions(),), stages.add_pass)
        functions = SeparatedKernels()
        if kernels is not None:
            functions = separate_functions(module, shared_symbols, kernels)
    with stages.stage("optimise"):
        object_code = emit_object(module, timing=stages.add_pass)
        objects = [
            *_kernel_objects(kernels, lowered.kernels, stages),
            *_kernel_objects(kernels, functions, stages),
        ]
    weights = {weight_symbol(weight.digest): weight for weight in lowered.constants}
    for code in regions.codes:
        weights |= {weight_symbol(weight.digest): weight for weight in code.native.constants}
    bound = {symbol for code in regions.codes for symbol in code.bound_symbols}
    bound.update(lowered.kernels.symbols.values(), functions.symbols.values())
    externals = {*external_functions(module), *(name for one in objects for name in one.externals)}
    data = [name for name in external_globals(module) if name != THREADS_SYMBOL]
    return Program(
        code=ObjectCode(
            object_code,
            {name: weights[name].data for name in data},
            tuple(one.code for one in objects),
        ),
        cpu=Cpu.host(),
        inputs=_specs(imported.inputs),
        outputs=_specs(imported.outputs),
        externals=tuple(sorted(externals - bound)),
        libraries=_libraries(regions.codes, openmp),
        library_symbols=tuple(item for code in regions.codes for item in code.library_symbols),
        python_regions=tuple(item for code in regions.codes for item in code.python_regions),
        regions=tuple(code.symbol for code in regions.codes),
        state_slots=int_attribute(module, STATE_SLOTS),
        context_slots=int_attribute(module, CONTEXT_SLOTS),
        arena_bytes=int_attribute(module, ARENA_BYTES),
        threads=options.threads,
        sources={code.symbol: code.source for code in regions.codes if code.source},
        report=replace(
            report,
            compile_seconds=tuple(stages.seconds.items()),
            pass_seconds=tuple(stages.pass_seconds.items()),
        ),
    )


def _kernel_objects(
    shared: SharedKernels | None, kernels: SeparatedKernels, stages: Stages
) -> Sequence[KernelObject]:
    """The object files with a program's kernels; the new ones are compiled and kept."""
    if shared is None or not kernels.new:
        return kernels.known
    code = emit_object(kernels.module, timing=stages.add_pass)
    compiled = KernelObject(code, external_functions(kernels.module))
    shared.keep(compiled, kernels.new)
    return [*kernels.known, compiled]


def _check_outputs(outputs: Sequence[TensorInfo]) -> None:
    size = sum(math.prod(map(int, info.shape)) * info.dtype.itemsize for info in outputs)
    current_limits().check("output_bytes", size, "bytes of the model's outputs")


def _specs(tensors: Sequence[TensorInfo]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(info.name, info.dtype, tuple(map(int, info.shape))) for info in tensors)


def _libraries(codes: Sequence[RegionCode], openmp: Path | None) -> tuple[SharedLibrary, ...]:
    libraries = [library for code in codes for library in code.native.libraries]
    known = [*libraries, *([openmp] if openmp else [])]
    return tuple(
        dict.fromkeys(
            library if isinstance(library, SharedLibrary) else SharedLibrary(library)
            for library in known
        )
    )
