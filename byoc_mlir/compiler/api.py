"""`compile`: loads a model from the cache, or compiles it.

Nothing here imports the compiler before it is needed: the import takes most of a second, which a
model from the cache does not need.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

from byoc_mlir.boundary import boundary
from byoc_mlir.compiler.cache.cached_model import CachedModel
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.compiler.execution.known import compile_here, known_model
from byoc_mlir.compiler.garbage import modules_imported
from byoc_mlir.compiler.request import OPTIONS, Request
from byoc_mlir.compiler.snapshot import Snapshot
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.warned import warn_user

if TYPE_CHECKING:
    from subprocess import Popen

    from byoc_mlir.compiler.debugging.verify import Examined
    from byoc_mlir.runtime.verification import Asked, Bisection, Verification


_Arguments = ParamSpec("_Arguments")


def _with_arguments_of(
    make: Callable[_Arguments, Request],
) -> Callable[[Callable[[Request], Executable]], Callable[_Arguments, Executable]]:
    """Gives a function of a request the arguments of `Request`, and adds their documentation to its
    own.
    """

    def decorate(function: Callable[[Request], Executable]) -> Callable[_Arguments, Executable]:
        signature = _signature(make)

        @wraps(function)
        def called(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Executable:
            signature.bind(*args, **kwargs)  # its error does not name the request
            return function(make(*args, **kwargs))

        called.__dict__["__signature__"] = signature
        called.__doc__ = (function.__doc__ or "").replace(_OTHERS, _documented())
        return called

    return decorate


def _signature(make: Callable[..., Request]) -> inspect.Signature:
    """Returns the signature of `compile`, with the defaults of `Request`'s fields, including
    factories' defaults.
    """
    empty = inspect.signature(make)
    defaults = vars(Request(b""))
    shown = [
        one if one.default is one.empty else one.replace(default=defaults[one.name])
        for one in empty.parameters.values()
    ]
    return empty.replace(parameters=shown, return_annotation="Executable")


def _documented() -> str:
    """Returns the options' part of the section `Args`."""
    texts = {name: info.meaning.replace("\n", "\n    ") for name, info in OPTIONS.items()}
    return "\n".join(f"        {name}: {text}" for name, text in texts.items())


_OTHERS = "        options: the other fields of `Request`, which documents them."


@_with_arguments_of(Request)
def compile(request: Request) -> Executable:
    """Compiles a model for this machine.

    Args:
        model: path of an `.onnx` or `.mlir` file, bytes, `onnx.ModelProto`, or an xDSL module.
        options: the other fields of `Request`, which documents them.

    Returns:
        The executable. A model with symbolic dimensions is compiled when it gets its first inputs:
        once for all shapes if possible, else for each set of shapes. See docs/shapes.md.

    Raises:
        InvalidModelError: the model is not valid, or unsafe to load.
        InvalidInputError: `sizes` names a dimension that the model does not have.
        UnsupportedModelError: the model has nodes that cannot be compiled; the error lists all of
            them.
        FallbackForbiddenError: `fallback="forbid"` and some nodes stayed on the host.
        BackendError: a target is unknown or cannot run here.
        CompilationError: a later stage failed.
        LimitExceededError: the model is larger than the limits.
        OutOfMemoryError: there is not enough memory.
        UnsafeCacheError: others may write to the folder of the cache.
        ByocError: an argument is not as documented. No other exceptions occur: see docs/limits.md.
    """
    with boundary("compile"):
        request = request.checked()
        if request.tune is not None:
            _tune(request, request.tune)
        if request.samples is not None:
            request = _with_products_kept(request, request.samples)
        executable = _compile(request)
        executable.verify_with(Verifying(request.without_model()))
        return executable


def _tune(request: Request, seconds: float) -> None:
    from byoc_mlir.compiler.tuning.tune import tune_model

    tuning = tune_model(request, seconds)
    if tuning.reason:
        warn_user(f"tuning left the model as it was: {tuning.reason}")


def _with_products_kept(request: Request, samples: Sequence[Mapping[str, Any]]) -> Request:
    from byoc_mlir.compiler.sampled_precision import products_to_keep

    exact = (*request.exact, *products_to_keep(request, samples))
    return replace(request, exact=exact, samples=None)


def _compile(request: Request) -> Executable:
    opened = Cache.open(request.cache if request.dump_ir is None else False)
    snapshot = Snapshot.found(request.model, None if opened is None else opened.digests)
    if snapshot is None:
        return compile_here(request, None)
    request = replace(request, model=snapshot)
    cached = _place(opened, request)
    found = None if cached is None else known_model(cached)
    if found is not None:
        return found
    process = None if cached is None else _process_for(request)
    answering = None
    try:
        if snapshot.path is not None:  # it may have changed since it was hashed
            snapshot = Snapshot.of_file(snapshot.path)
        request = replace(request, model=snapshot)
        cached = _place(opened, request)
        if process is not None and cached is not None:
            with modules_imported():
                from byoc_mlir.compiler.execution.at_once import answering_at_once

            answering = answering_at_once(snapshot, cached, process)
    finally:
        if process is not None and answering is None:
            from byoc_mlir.compiler.execution.compiling_process import end

            end(process)
    return compile_here(request, cached) if answering is None else answering


def _process_for(request: Request) -> Popen[bytes] | None:
    """Starts a process to compile a model, which imports modules while this one reads the model.

    Returns `None` if the interpreter tier cannot answer meanwhile.
    """
    if request.plain_file is None or os.environ.get("BYOC_INTERPRETER") == "off":
        return None
    with modules_imported():
        from byoc_mlir.compiler.execution.compiling_process import new_process

        return new_process()


def _place(cache: Cache | None, request: Request) -> CachedModel | None:
    return None if cache is None else CachedModel.of(cache, request)


@dataclass(frozen=True)
class Verifying:
    """Verifier of the executables of a request; of a model, it keeps only the path."""

    request: Request

    def verify(self, executable: Executable, asked: Asked) -> Verification:
        """Returns the result of `Executable.verify`."""
        return self._examined(executable, asked).verification

    def bisect(self, executable: Executable, asked: Asked) -> Bisection:
        """Returns the result of `Executable.bisect`."""
        from byoc_mlir.compiler.debugging.bisect import bisect

        return bisect(self._examined(executable, asked))

    def _examined(self, executable: Executable, asked: Asked) -> Examined:
        from byoc_mlir.compiler.debugging.verify import examine

        request = self.request
        if asked.model is not None:
            request = replace(request, model=asked.model)
        if request.model == b"":
            raise InvalidModelError(
                "the model was not given as the path of a file, and is not kept; give it to verify,"
                " as in executable.verify(inputs, model=model)"
            )
        return examine(executable, request, asked)
