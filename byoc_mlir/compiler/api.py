"""`compile`: what is in the cache is loaded, the rest is compiled.

Nothing here imports the compiler before it is needed: most of a second, which a model that comes
from the cache does not pay.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from byoc_mlir.boundary import boundary, check_argument
from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.cache.folder import Cache, Folder
from byoc_mlir.compiler.execution.here import compile_here
from byoc_mlir.compiler.execution.known import known_model
from byoc_mlir.compiler.garbage import modules_imported
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.compiler.verifying import Verifying
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.rates import read_rates
from byoc_mlir.runtime.executable import Executable

if TYPE_CHECKING:
    from byoc_mlir.backends import Setting
    from byoc_mlir.compiler.source import ModelSource


def compile(
    model: ModelSource,
    targets: Sequence[str] | None = None,
    threads: int | None = None,
    precision: str = "f32",
    fallback: str = "warn",
    *,
    backend_options: Mapping[str, Mapping[str, Setting]] | None = None,
    prune: str | None = None,
    denormals: str = "keep",
    cache: Folder = None,
    limits: Limits | None = None,
    profile: bool = False,
    dump_ir: str | Path | None = None,
    rates: str | Path | None = None,
    disable: Sequence[str] = (),
    passes: Sequence[str] = (),
    tune: float | None = None,
    sizes: Mapping[str, int] | None = None,
    exact: Sequence[str] = (),
    samples: Sequence[Mapping[str, Any]] | None = None,
    weight_memory: float = 2.0,
    eager: bool = True,
    trusted: bool = False,
) -> Executable:
    """Compiles a model for this machine.

    Args:
        model: path of an `.onnx` or `.mlir` file, bytes, `onnx.ModelProto`, or an xDSL module.
        targets: backends in order of preference, with options where wanted, `"mine{mode=fast}"`;
            `()` compiles everything for the host. Left out: every backend that is used by default
            and runs on this machine.
        threads: OpenMP threads per run; left out: the cores this process may use.
        precision: `"f32"`: full single precision, nothing is rounded to less. `"bf16"`: where this
            processor is faster so, products read numbers rounded to 16 bits; inputs, outputs and
            sums stay in `f32`. `"bf16x3"`: where that is faster, products are three of `bf16` each,
            with errors of at most 3e-5 of the largest result. See docs/precision.md.
        fallback: `"warn"` warns when a convolution or matrix product stays on the host, `"allow"`
            does not, `"forbid"` raises when any node does.
        backend_options: the targets' options in another form, `{"mine": {"mode": "fast"}}`.
        prune: `"estimated"` sends regions with little work back to the host, `"measured"` those
            that ran faster there when both were timed while compiling; `"auto"` times models of
            little work, and compares estimates in others (docs/partitioning.md); `"off"` keeps
            all. Left out: `"off"` where targets are named or `fallback="forbid"`, else `"auto"`.
        denormals: `"keep"` computes with them, `"flush"` takes them for zero while the model runs,
            which some processors do much faster. See docs/processes.md.
        cache: a folder that keeps compiled models for other processes, or `False` for none; left
            out: the one that the environment variable `BYOC_CACHE_DIR` names, else the user's,
            unless `BYOC_CACHE` is `off`. See docs/compile-time.md.
        limits: how much the model may ask for; left out: `Limits()`. See docs/limits.md.
        profile: whether `Executable.profile` can tell the time of each step. Reading the clock
            takes some 25 ns a step. See docs/profiling.md.
        dump_ir: a folder for the IR after each pass, LLVM's IR and assembly, and what backends
            generated. Nothing comes from the cache then. See docs/debugging.md.
        rates: a file of what was measured, from `byoc compile --write-rates`. The same file gives
            the same code, and nothing is measured. See docs/costs.md.
        disable: names of passes, patterns and backends to leave out, `("simplify",
            "mine.conv2d_relu")`, to find the one that makes a difference. See docs/debugging.md.
        passes: passes of your own, with options where wanted, `("my-pass{factor=2}",)`; they run
            on the model before it is partitioned. See docs/passes.md.
        tune: seconds to look for faster ways to compute the host's kernels, which are kept for all
            processes of this machine; the model is compiled as often as that time allows. A warning
            says why, where everything stays as it was. See docs/tuning.md.
        sizes: numbers for symbolic dimensions of inputs and outputs, `{"batch": 8}`, which no input
            may contradict. See docs/shapes.md.
        exact: names of nodes whose products are computed in `f32` whatever `precision` says.
        samples: inputs like those that the model will get, which are run to find further nodes for
            `exact`, so that outputs are close to those in `f32`. The model is compiled some 25
            times. See docs/precision.md.
        weight_memory: what packed weights may take, in times of the model's, beside as much as its
            intermediate values take. Where faster convolutions need more, slower ones are taken;
            `math.inf` sets no bound. See docs/costs.md.
        eager: whether a model whose sizes come with its inputs answers at once, node by node, while
            another process compiles it; not where the cache has it, or is off, or anything else is
            asked for but `threads`. See docs/eager.md.
        trusted: True accepts ops of all dialects in a `.mlir` file, which may run any native code.
            Left out: those that compute on tensors. See docs/limits.md.

    Returns:
        The executable. A model with symbolic dimensions is compiled when inputs come: once, where
        its sizes can be arguments of native code, else for each set of shapes. See docs/shapes.md.

    Raises:
        InvalidModelError: the model is not valid, or unsafe to load.
        InvalidInputError: `sizes` names a dimension that the model does not have.
        UnsupportedModelError: it has nodes that cannot be compiled; the error lists all.
        FallbackForbiddenError: `fallback="forbid"` and some nodes stayed on the host.
        BackendError: a target is unknown or cannot run here.
        CompilationError: a later stage failed.
        LimitExceededError: the model is larger than the limits.
        OutOfMemoryError: there is not enough memory.
        UnsafeCacheError: others may write to the folder of the cache.
        ByocError: an argument is not as documented. Nothing else is raised: see docs/limits.md.
    """
    with boundary("compile"):
        check_argument("rates", rates, str | Path | None, "the path of a file, or None")
        known = None if rates is None else read_rates(rates)
        request = Request(
            model,
            targets=targets,
            threads=threads,
            precision=precision,
            fallback=fallback,
            backend_options={} if backend_options is None else backend_options,
            prune=prune,
            denormals=denormals,
            limits=DEFAULT_LIMITS if limits is None else limits,
            profile=profile,
            dump_ir=dump_ir,
            rates=known,
            disable=disable,
            passes=passes,
            sizes={} if sizes is None else sizes,
            exact=exact,
            weight_memory=weight_memory,
            trusted=trusted,
        )
        request.check()
        request = request.fixed()
        check_argument("eager", eager, bool, "True or False")
        if cache is not False:
            accepted = "the path of a folder, False, or None"
            check_argument("cache", cache, str | Path | None, accepted)
        if tune is not None:
            _tune(request, tune)
        if samples is not None:
            request = _with_products_kept(request, samples)
        at_once = eager and tune is None and samples is None and _may_be_eager()
        executable = _compile(request, cache if dump_ir is None else False, at_once)
        executable.verify_with(Verifying.of(request))
        return executable


def _tune(request: Request, seconds: float) -> None:
    from byoc_mlir.compiler.tuning.tune import tune_model

    tuning = tune_model(request, seconds)
    if tuning.reason:
        warnings.warn(f"tuning left the model as it was: {tuning.reason}", stacklevel=3)


def _with_products_kept(request: Request, samples: Sequence[Mapping[str, Any]]) -> Request:
    from byoc_mlir.compiler.sampled_precision import products_to_keep

    return replace(request, exact=(*request.exact, *products_to_keep(request, samples)))


def _compile(request: Request, cache: Folder, eager: bool) -> Executable:
    opened = Cache.open(cache)
    snapshot = Snapshot.found(request.model)
    if snapshot is None:
        return compile_here(request, None)
    cached = _place(opened, replace(request, model=snapshot))
    found = None if cached is None else known_model(cached)
    if found is not None:
        return found
    if snapshot.path is not None:  # it may have changed since it was hashed
        snapshot = Snapshot.of_file(snapshot.path)
    request = replace(request, model=snapshot)
    cached = _place(opened, request)
    if eager and cached is not None and request.plain_file is not None:
        with modules_imported():
            from byoc_mlir.compiler.execution.at_once import answering_at_once

        answering = answering_at_once(snapshot, cached)
        if answering is not None:
            return answering
    return compile_here(request, cached)


def _place(cache: Cache | None, request: Request) -> CachedModel | None:
    return None if cache is None else CachedModel.of(cache, request)


def _may_be_eager() -> bool:
    """Whether the environment allows it."""
    return os.environ.get("BYOC_EAGER") != "off"
