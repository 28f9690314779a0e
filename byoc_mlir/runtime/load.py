"""`load`: opening what `Executable.export_library` wrote."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from byoc_mlir.boundary import boundary, check_argument
from byoc_mlir.errors import InvalidArtifactError
from byoc_mlir.files import open_file
from byoc_mlir.limits import DEFAULT_LIMITS
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.executables.sized import SizedProgram
from byoc_mlir.runtime.executables.staged_file import executable_of
from byoc_mlir.runtime.files.container import Container, read_container
from byoc_mlir.runtime.files.serialise import Json, decode
from byoc_mlir.runtime.files.shared_object import TABLE_SYMBOL, SharedCode, SharedFile, stage_table
from byoc_mlir.runtime.files.stored import decode_program
from byoc_mlir.runtime.files.stored_sizes import SIZES, StoredSizes
from byoc_mlir.runtime.files.stored_stages import PROGRAMS, STAGES, StoredStages
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.system.threads import check_threads


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
    reader = _Reader(container, SharedFile(file, name, container.file), folder, threads)
    if STAGES not in container.document:
        return executable_of(reader.program(container.document, TABLE_SYMBOL))
    documents = container.document.get(PROGRAMS)
    if not isinstance(documents, list):
        raise InvalidArtifactError(f"'{name}' has stages, and no programs for them")
    programs = [
        reader.program(document, stage_table(number)) for number, document in enumerate(documents)
    ]
    stages = decode(StoredStages, container.document[STAGES], container.blobs)
    return executable_of(stages.program(programs))


@dataclass(frozen=True)
class _Reader:
    """Reads the programs of a file."""

    container: Container
    shared: SharedFile
    folder: Path
    threads: int | None

    def program(self, document: Json, table: str) -> Program | SizedProgram:
        """The program of a document, whose code has a table of this name."""
        name, blobs = self.shared.name, self.container.blobs
        if not isinstance(document, dict):
            raise InvalidArtifactError(f"'{name}' has a program that is none")
        code = SharedCode(self.shared, table)
        fields = {key: part for key, part in document.items() if key != SIZES}
        program = decode_program(fields, blobs, code, name, self.folder)
        if self.threads is not None:
            program = replace(program, threads=self.threads)
        if SIZES not in document:
            return program
        sizes = decode(StoredSizes, document[SIZES], blobs)
        return sizes.program(program, DEFAULT_LIMITS)
