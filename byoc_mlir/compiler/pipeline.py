"""The stages of a compilation, in order: from a model to a program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.backends import Backend, get_backends
from byoc_mlir.compiler.build import Build, compiling, dump_folder
from byoc_mlir.compiler.denormals import warn_of_denormals
from byoc_mlir.compiler.garbage import collect_weights, collection_paused
from byoc_mlir.compiler.link import assemble, join_modules, place_contexts
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.partition.generate import declare_regions, generate_regions, uploads_of
from byoc_mlir.compiler.partition.profitability import prune_unprofitable
from byoc_mlir.compiler.partition.report import build_report, check_fallback
from byoc_mlir.compiler.source import Shapes, Source, Values
from byoc_mlir.dialects.relay.constant import held_bytes
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.frontend.model import ImportedModel
from byoc_mlir.ir_dump import dump_text, dumping, located_text
from byoc_mlir.limits import current_limits
from byoc_mlir.lowering.host_pipeline import (
    Passes,
    PassesFor,
    lower_host,
    ops_named,
    run_passes,
)
from byoc_mlir.lowering.llvm_ir.codegen import emit_objects
from byoc_mlir.lowering.mark_cold_functions import MarkColdFunctions
from byoc_mlir.lowering.mark_vectorised_functions import MarkVectorisedFunctions
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.system.libraries import find_openmp
from byoc_mlir.transforms.drop_unused_functions import DropUnusedFunctions
from byoc_mlir.transforms.fold_constants import FoldConstants
from byoc_mlir.transforms.limit_weight_growth import LimitWeightGrowth
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.profitability import why_unprofitable
from byoc_mlir.transforms.simplify import Simplify
from byoc_mlir.transforms.widen_16_bit_floats import Widen16BitFloats

_QUANTISED = ("relay.qnn.",)
_RECURRENT = ("relay.nn.gru", "relay.nn.lstm")
_AFFINE = ("relay.add", "relay.multiply", "relay.nn.batch_norm", "relay.subtract")

_CARRIES_NODES = ops_named("relay.onnx_node")
"""Test for ONNX nodes for which the host has no code."""

_INTEGER_PRODUCTS = ("relay.qnn.dense", "relay.qnn.conv1d", "relay.qnn.conv2d")
"""Matmuls and convolutions that are faster in integers; others run in `f32` if the model leaves the
choice.
"""

_INTEGER_OPS = (
    *(*_INTEGER_PRODUCTS, "relay.qnn.matmul", "relay.qnn.conv3d"),
    *("relay.qnn.requantize", "relay.qnn.add", "relay.qnn.lookup"),
    *(f"relay.qnn.{kind}_pool{rank}d" for kind in ("avg", "global_avg") for rank in (1, 2, 3)),
)
"""Ops on quantised tensors that backends and integer kernels compute; `Backend.quantised_ops` adds
to them.
"""


def _quantised_passes(whole: Sequence[str] = ()) -> Sequence[ModulePass]:
    """Returns the passes for quantised ops; those in `whole` stay, too."""
    from byoc_mlir.transforms.decompose_qnn import DecomposeQnn
    from byoc_mlir.transforms.fake_quantization_to_integer import FakeQuantizationToInteger
    from byoc_mlir.transforms.unfold_transposed_convolutions import UnfoldTransposedConvolutions
    from byoc_mlir.transforms.unsigned_bytes import UnsignedBytes

    return (
        UnfoldTransposedConvolutions(),
        FakeQuantizationToInteger(products=_INTEGER_PRODUCTS),
        UnsignedBytes(),
        DecomposeQnn(kept=(*_INTEGER_OPS, *whole)),
    )


def _affine_passes() -> Sequence[ModulePass]:
    from byoc_mlir.transforms.fold_batch_norm import FoldBatchNorm

    return (FoldBatchNorm(),)


_QUANTISED_PASSES = PassesFor(ops_named(*_QUANTISED), _quantised_passes)

CANONICALISATION: Passes = (
    Widen16BitFloats(),
    _QUANTISED_PASSES,
    FoldConstants(),
    Simplify(),
    PassesFor(ops_named(*_AFFINE), _affine_passes),
    FoldConstants(),
    Simplify(),
    DropUnusedFunctions(),
)


@collection_paused()
def build_program(
    source: Source,
    shapes: Shapes,
    values: Values,
    options: CompileOptions,
    problems: Sequence[str] = (),
) -> Program:
    """Compiles a source model for one set of input shapes and values.

    Args:
        problems: earlier problems, for the report.

    Raises:
        ByocError: as for `compile`.
    """
    build = Build(source, shapes, values, options, problems=list(problems))
    with compiling(build, dump_folder(options.dump_ir, source, shapes)):
        import_model(build)
        with asking_of(build.module):
            canonicalise(build)
            partition(build)
            prune(build)
            collect_weights(held_bytes())
            return build_partitioned(build)


def build_partitioned(build: Build) -> Program:
    """Builds the program of a partitioned module.

    It generates code for the regions and the host, and links them.
    """
    generate(build)
    lower(build)
    link(build)
    optimise(build)
    return assemble(build)


def dump_import(build: Build) -> None:
    """Writes the imported model to the dump folder, if there is one."""
    dump_text("000-import.mlir", lambda: located_text(build.module))


def import_model(build: Build) -> None:
    """Imports ONNX, or IR that the user wrote, as `relay` on tensors of fixed shapes."""
    with build.stages.stage("import"):
        build.imported = _in_spaces(build, build.source.bind(build.shapes, build.values))
        if build.options.denormals == "keep":
            warn_of_denormals(build.module)
        size = sum(
            math.prod(map(int, info.shape)) * info.dtype.itemsize for info in build.imported.outputs
        )
        dump_import(build)
        current_limits().check("output_bytes", size, "bytes of the model's outputs")


def _in_spaces(build: Build, imported: ImportedModel) -> ImportedModel:
    """Returns the imported model with the memory spaces of its inputs and outputs."""
    resident = build.options.resident
    if not resident:
        return imported
    from byoc_mlir.compiler.resident import in_spaces

    return replace(
        imported,
        inputs=in_spaces(imported.inputs, resident),
        outputs=in_spaces(imported.outputs, resident),
    )


def canonicalise(build: Build) -> None:
    """Folds and simplifies the module, before and after the passes that the user named.

    Then equal layers become one function, unless options distinguish nodes by name.
    """
    options = build.options
    with build.stages.stage("canonicalise"):
        passes = canonicalisation(options.targets)
        run_passes(build.context, build.module, passes, build.stages.add_pass)
        if options.passes:
            _run_user_passes(build)
        if not options.profile and not options.exact:
            layers = PassesFor(ops_named("relay.update_slice"), _equal_layers)
            run_passes(build.context, build.module, [layers], build.stages.add_pass)


def _run_user_passes(build: Build) -> None:
    from byoc_mlir.compiler.partition.backend_passes import run_user_passes
    from byoc_mlir.compiler.user_passes import passes_of

    named = passes_of(build.options.passes)
    run_user_passes(build.context, build.module, named, build.stages.add_pass)
    run_passes(build.context, build.module, (FoldConstants(), Simplify()), build.stages.add_pass)


def _equal_layers() -> Sequence[ModulePass]:
    """Returns the passes that make one function of equal layers of a model with caches."""
    from byoc_mlir.transforms.merge_equal_ops import MergeEqualOps
    from byoc_mlir.transforms.share_layers import ShareLayers

    return (MergeEqualOps(), ShareLayers(), DropUnusedFunctions())


def canonicalisation(targets: Sequence[str]) -> Passes:
    """Returns the passes of `canonicalise`.

    16-bit floats stay if `f16` pays on a backend, and quantised ops that a backend requires whole.
    """
    backends = get_backends(targets)
    passes = list(CANONICALISATION)
    if any(backend.profitability("f16").ops for backend in backends):
        passes = [one for one in passes if not isinstance(one, Widen16BitFloats)]
    whole = sorted(f"relay.{name}" for backend in backends for name in backend.quantised_ops)
    if whole:
        quantised = PassesFor(ops_named(*_QUANTISED), partial(_quantised_passes, whole))
        passes = [quantised if one is _QUANTISED_PASSES else one for one in passes]
    return passes


def partition(build: Build) -> None:
    """Outlines the parts that backends run as regions."""
    targets = _all_targets(build)
    build.backends = tuple(get_backends(targets))
    with build.stages.stage("partition"):
        build.problems += _misnamed_ops(build.backends)
        if any(backend.module_passes() for backend in build.backends):
            build.problems += _run_module_passes(build)
        precision = build.options.precision
        reason = why_unprofitable(precision, targets) if precision != "f32" else None
        if reason is not None:
            build.problems.append(f"the model runs in f32, not in {precision}: {reason}")
        exact = build.options.exact
        partitioning = PartitionFor(targets=targets, precision=precision, exact=exact)
        add_pass = build.stages.add_pass
        run_passes(build.context, build.module, [partitioning], add_pass, verify=True)
        bound = LimitWeightGrowth(build.options.weight_memory)
        run_passes(build.context, build.module, [bound], add_pass)


def _all_targets(build: Build) -> tuple[str, ...]:
    """Returns the targets, with the fallback interpreter if some nodes need it."""
    if not _CARRIES_NODES(build.module):
        return build.options.targets
    from byoc_mlir.compiler.partition.fallback import targets_with_interpreter

    return targets_with_interpreter(build.module, build.options)


def _run_module_passes(build: Build) -> Sequence[str]:
    from byoc_mlir.compiler.partition.backend_passes import run_module_passes

    return run_module_passes(build.context, build.module, build.backends, build.options.fallback)


def _misnamed_ops(backends: Sequence[Backend]) -> Sequence[str]:
    """Returns the problems of installed backends that name ops which do not exist.

    A test checks the backends of this package. So the names of all ops are imported only here.
    """
    installed = [one for one in backends if not type(one).__module__.startswith("byoc_mlir.")]
    if not installed:
        return ()
    from byoc_mlir.backends.op_names import unknown_ops

    return [
        f"backend '{backend.name}', {subject}: {problem}"
        for backend in installed
        for subject, problem in unknown_ops(backend)
    ]


def _mixes_on_host(options: CompileOptions) -> bool:
    """True if the host rounds matmuls to `bf16` too; it does so if a target is faster in `bf16`."""
    return options.precision == "bf16" and not why_unprofitable("bf16", options.targets)


def prune(build: Build) -> None:
    """Moves regions that do not pay to the next target, or back to the host."""
    if build.options.prune == "off":
        return
    with build.stages.stage("prune"):
        prune_unprofitable(
            build.context,
            build.module,
            build.options,
            build.backends,
            lambda part: _build_part(build, part),
        )


def _build_part(build: Build, module: ModuleOp) -> Program:
    """Builds the program of one part of the model, without dumping IR."""
    with dumping(None):
        return build_partitioned(build.of_part(module))


def generate(build: Build) -> None:
    """Generates the regions' code.

    A region that its backend cannot compile goes to the next backend, or to the host.
    """
    with build.stages.stage("generate"):
        if _mixes_on_host(build.options):
            rounding = PassesFor(ops_named(*_RECURRENT), partial(_rounding, build.options.exact))
            run_passes(build.context, build.module, [rounding], build.stages.add_pass)
        if build.options.profile:
            from byoc_mlir.transforms.traffic import Traffic

            build.traffic = Traffic.of(build.module)
        build.codes, problems = generate_regions(
            build.context, build.module, build.backends, build.options
        )
    for code in build.codes:
        if code.source:
            dump_text(f"{code.symbol}.generated", lambda text=code.source: text)
    build.uploads = uploads_of(build.codes, build.options)
    build.problems += problems
    build.report = build_report(build.imported, build.codes, build.problems, build.options.omitted)
    check_fallback(build.report, build.options.fallback, build.options.targets)


def _rounding(exact: tuple[str, ...]) -> Sequence[ModulePass]:
    from byoc_mlir.lowering.round_recurrent_weights import RoundRecurrentWeights

    return (RoundRecurrentWeights(exact),)


def lower(build: Build) -> None:
    """Lowers the host's part to the `llvm` dialect; regions are declarations in it."""
    with build.stages.stage("lower"):
        declare_regions(build.module, build.codes, build.uploads)
        integers = PassesFor(ops_named(*_QUANTISED), _host_integers)
        run_passes(build.context, build.module, [integers], build.stages.add_pass)
        if build.options.resident:
            from byoc_mlir.compiler.resident import mark_residents

            mark_residents(build.module, build.imported.inputs, build.imported.outputs)
        build.constants = lower_host(
            build.context,
            build.module,
            threads=build.options.threads if find_openmp() is not None else 0,
            outputs=len(build.imported.outputs),
            timing=build.stages.add_pass,
            flush_denormals=build.options.denormals == "flush",
        )


def _host_integers() -> Sequence[ModulePass]:
    """Returns the passes for integer ops."""
    from byoc_mlir.lowering.integer_products.lower_integer_products import LowerIntegerProducts
    from byoc_mlir.transforms.convolutions_to_float import ConvolutionsToFloat
    from byoc_mlir.transforms.decompose_qnn import DecomposeQnn

    return (
        ConvolutionsToFloat(),
        LowerIntegerProducts(),
        DecomposeQnn(),
        FoldConstants(),
        Simplify(),
    )


def link(build: Build) -> None:
    """Links the regions' code with the host's."""
    with build.stages.stage("link"):
        natives = [code.native for code in build.codes]
        common = [native.shared for native in natives if native.shared is not None]
        own = [native.module for native in natives]
        if build.uploads is not None:
            own += build.uploads.modules(build.module)
        join_modules(build.module, own, common)
        place_contexts(build.module, build.codes)
        profiling = _profiling() if build.options.profile else ()
        passes = (*profiling, MarkColdFunctions(), MarkVectorisedFunctions())
        run_passes(build.context, build.module, passes, build.stages.add_pass)


def _profiling() -> Sequence[ModulePass]:
    from byoc_mlir.lowering.profile_steps import ProfileSteps

    return (ProfileSteps(),)


def optimise(build: Build) -> None:
    """Compiles the program to object code with LLVM."""
    with build.stages.stage("optimise"):
        build.objects = emit_objects(build.module, timing=build.stages.add_pass)
