"""`load`: opening what `Executable.export_library` wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from byoc_mlir.boundary import boundary, check_argument
from byoc_mlir.errors import InvalidArtifactError
from byoc_mlir.files import open_file
from byoc_mlir.limits import DEFAULT_LIMITS
from byoc_mlir.runtime.compiled import CompiledExecutable
from byoc_mlir.runtime.container import read_container
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.one_program import sized_executable
from byoc_mlir.runtime.serialise import decode
from byoc_mlir.runtime.shared_object import SharedCode
from byoc_mlir.runtime.stored import decode_program
from byoc_mlir.runtime.stored_sizes import SIZES, StoredSizes
from byoc_mlir.runtime.threads import check_threads


def load(path: str | Path, threads: int | None = None) -> Executable:
    """Opens a compiled model; no compiler is loaded.

    Nothing of the file runs before its hash, its format version, the processor's features and the
    libraries' versions are checked.

    Args:
        path: of the file that `export_library` wrote.
        threads: OpenMP threads per run; left out: as many as the model was compiled for.

    Raises:
        InvalidArtifactError: the file cannot be read, is no compiled model, or truncated, or
            altered.
        IncompatibleArtifactError: this machine lacks a processor feature or a library.
        ExecutionError: a backend's package is missing, or a region cannot be set up.
    """
    with boundary("load"):
        return _load(path, threads)


def _load(path: str | Path, threads: int | None) -> Executable:
    check_argument("the path", path, str | Path, "the path of a file", InvalidArtifactError)
    if threads is not None:
        check_threads(threads, DEFAULT_LIMITS)
    path = Path(path)
    with open_file(path, InvalidArtifactError) as file:
        return load_artifact(file, path.name, path.resolve().parent, threads)


def load_artifact(file: BinaryIO, name: str, folder: Path, threads: int | None) -> Executable:
    """As `load`, from an open file.

    Args:
        name: what errors call it.
        folder: where its libraries may be, beside the usual places.
    """
    container = read_container(file, name)
    code = SharedCode(file, name, container.file)
    document = {key: part for key, part in container.document.items() if key != SIZES}
    program = decode_program(document, container.blobs, code, name, folder)
    if threads is not None:
        program = replace(program, threads=threads)
    if SIZES not in container.document:
        return CompiledExecutable(program)
    sizes = decode(StoredSizes, container.document[SIZES], container.blobs)
    return sized_executable(sizes.program(program, DEFAULT_LIMITS))
