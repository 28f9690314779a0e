"""`cross_compile`: compiles a model to a file for another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from onnx import ModelProto

from byoc_mlir.artifact.export import export_library, export_object
from byoc_mlir.boundary import boundary, check_argument
from byoc_mlir.compiler.execution.programs import ModelPrograms
from byoc_mlir.compiler.garbage import collection_paused
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.source import ModelSource, Source, read_source
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.errors import BackendError, ExportError, InputValuesNeededError
from byoc_mlir.frontend.stages.split import split_model
from byoc_mlir.frontend.string_labels import with_looked_up_strings
from byoc_mlir.frontend.strings import string_parts
from byoc_mlir.frontend.structures import is_structured
from byoc_mlir.limits import DEFAULT_LIMITS, Limits, limited
from byoc_mlir.runtime.arguments import Arguments, Shape
from byoc_mlir.runtime.execution.dynamic_leaf import usual_shape
from byoc_mlir.runtime.plan import leaf_of
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.system.cpu import Machine, generating_for


def cross_compile(
    model: ModelSource,
    path: str | Path,
    triple: str,
    *,
    shapes: Mapping[str, Shape] | None = None,
    name: str | None = None,
    threads: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    calibration: str | Path | None = None,
    disable: Sequence[str] = (),
    passes: Sequence[str] = (),
) -> Path:
    """Compiles a model for another machine, with the host compiler only, and writes it to a
    file.

    Args:
        model: as for `compile`.
        path: path of the file: `model.o` for an object file for C programs, `model.so` for a shared
            object for C programs and for `byoc_mlir.load` on that machine. The header is `model.h`.
        triple: the machine, `"aarch64-linux-gnu"` or `"x86_64-linux-gnu"`; the code runs on every
            processor of that architecture. Its C compiler is `TRIPLE-gcc`.
        shapes: shapes of all inputs, for a model with symbolic dimensions. By default, sizes are
            arguments of the C functions, if one program can serve all shapes.
        name: prefix of the C functions; by default, it is derived from the file's name.
        threads: OpenMP threads per run; by default, the cores that this process may use.
        limits: limits of the model's resources; by default, `Limits()`.
        calibration: a file of measurements on such a machine; by default, none is used.
        disable: as for `compile`.
        passes: as for `compile`.

    Returns:
        The header's path.

    Raises:
        ExportError: the model cannot be one file, or the path has another ending.
        ToolchainError: there is no C compiler for that machine.
        ByocError: the triple is not accepted; also the errors of `compile`.
    """
    with boundary("compile"):
        check_argument("path", path, str | Path, "the path of a file")
        request = Request(
            model,
            targets=(),
            threads=threads,
            limits=limits,
            calibration=calibration,
            disable=disable,
            passes=passes,
        ).checked()
        return write_program(program_for(request, triple, shapes), Path(path), triple, name)


@collection_paused()
def program_for(
    request: Request, triple: str, shapes: Mapping[str, Shape] | None = None
) -> Program:
    """Compiles a checked request for another machine; arguments and errors as for `cross_compile`.

    Raises:
        BackendError: the request names a backend.
    """
    check_argument("triple", triple, str, "text, as 'aarch64-linux-gnu'")
    machine = Machine.of(triple)
    if request.targets:
        raise BackendError(
            f"backends generate code for the machine that compiles, not for {triple}: leave out"
            f" {', '.join(request.targets)}; the host compiler takes the whole model"
        )
    with ir_boundary("compile"), limited(request.limits), generating_for(machine):
        options = CompileOptions.of(
            replace(request, targets=(), calibration=request.calibration or {})
        )
        source = read_source(request.model, request.sizes, trusted=request.trusted)
        _check_is_one_piece(source)
        return _program(source, ModelPrograms(lambda: (source, options), None), shapes)


def write_program(program: Program, path: Path, triple: str, name: str | None = None) -> Path:
    """Writes a program of `program_for` for a triple.

    Returns:
        The header's path.

    Raises:
        ExportError: the path has another ending, or a part of the model runs in Python.
        ToolchainError: there is no C compiler for that machine.
    """
    writers = {".so": export_library, ".o": export_object}
    if path.suffix not in writers:
        raise ExportError(f"'{path}' must end in .so (a shared object) or .o (an object file)")
    return writers[path.suffix](leaf_of(program), path, name, triple)


def _check_is_one_piece(source: Source) -> None:
    model = source.model
    if not isinstance(model, ModelProto):
        return
    reasons = {
        "it takes or gives sequences, optionals or maps": is_structured(model),
        "it works on strings": bool(string_parts(with_looked_up_strings(model))),
        "shapes in it depend on computed values": len(split_model(model)) > 1,
    }
    for reason, holds in reasons.items():
        if holds:
            raise ExportError(
                f"the model is more than one program, since {reason}; it cannot be exported"
            )


def _program(
    source: Source, programs: ModelPrograms, shapes: Mapping[str, Shape] | None
) -> Program:
    known = {info.name: usual_shape(info) for info in source.inputs}
    if shapes is not None:
        known = Arguments(source.inputs).shapes(shapes)
    elif not all(info.is_static for info in source.inputs):
        generic = programs.generic(known)
        if generic is None:
            raise ExportError(
                "no program serves all sizes of the model; give the shapes of"
                f" {', '.join(map(str, source.inputs))} as shapes={{...}}"
            )
        return generic
    try:
        return programs.program(known)
    except InputValuesNeededError as error:
        raise ExportError(
            f"shapes in the model depend on the values of the inputs {', '.join(error.inputs)}, so"
            " it cannot be exported"
        ) from error
