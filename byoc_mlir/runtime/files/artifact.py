"""Reader of the plan in an artifact."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import BinaryIO

from byoc_mlir.errors import InvalidArtifactError
from byoc_mlir.runtime.files.container import read_container
from byoc_mlir.runtime.files.serialise import Json
from byoc_mlir.runtime.files.shared_object import SharedCode, SharedFile, program_table
from byoc_mlir.runtime.files.stored import decode_program
from byoc_mlir.runtime.files.stored_plan import PLAN, decode_plan
from byoc_mlir.runtime.plan import Loop, Node
from byoc_mlir.runtime.program import Program


def read_artifact(file: BinaryIO, name: str, folder: Path, threads: int | None) -> Node:
    """Returns the plan of an open file.

    Args:
        name: name of the file in errors.
        folder: folder in which to look for the file's libraries, besides the usual ones.
        threads: OpenMP threads per run; `None`: as many as the model was compiled for.

    Raises:
        InvalidArtifactError: the file is no compiled model, or it is truncated or altered.
        IncompatibleArtifactError: this machine lacks a processor feature or a library.
        DeviceError: this machine lacks a device.
    """
    container = read_container(file, name)
    shared, numbers = SharedFile(file, name, container.file), count()

    def read(document: Json) -> Program:
        code = SharedCode(shared, program_table(next(numbers)))
        program = decode_program(document, container.blobs, code, name, folder)
        return program if threads is None else replace(program, threads=threads)

    plan = decode_plan(container.document.get(PLAN), container.blobs, read)
    if isinstance(plan, Loop):
        raise InvalidArtifactError(f"'{name}' has a loop, and no model that it is a part of")
    return plan
