"""Function `load`, which opens files that `Executable.export_library` wrote."""

from __future__ import annotations

from pathlib import Path

from byoc_mlir.boundary import boundary, check_argument
from byoc_mlir.errors import InvalidArtifactError
from byoc_mlir.files import open_file
from byoc_mlir.limits import DEFAULT_LIMITS
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.execution.complete import loaded
from byoc_mlir.runtime.files.artifact import read_artifact
from byoc_mlir.runtime.system.threads import check_threads


def load(path: str | Path, threads: int | None = None) -> Executable:
    """Opens a compiled model, without loading a compiler.

    No code of the file runs before its hash, its format version, the processor's features and the
    libraries' versions are checked.

    Args:
        path: path of the file that `export_library` wrote.
        threads: OpenMP threads per run; by default, as many as the model was compiled for.

    Raises:
        InvalidArtifactError: the file cannot be read, is no compiled model, or is truncated or
            altered.
        IncompatibleArtifactError: this machine lacks a processor feature or a library.
        ExecutionError: a backend's package is missing, or a region cannot be set up.
    """
    with boundary("load"):
        check_argument("the path", path, str | Path, "the path of a file", InvalidArtifactError)
        if threads is not None:
            check_threads(threads, DEFAULT_LIMITS)
        path = Path(path)
        with open_file(path, InvalidArtifactError) as file:
            plan = read_artifact(file, path.name, path.resolve().parent, threads)
            return Executable(loaded(plan))
