"""Compiled models in pickles: the same containers as in files, with the same checks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from byoc_mlir.runtime.executable import Executable, Exporter
from byoc_mlir.runtime.executables.compiled import CompiledExecutable
from byoc_mlir.runtime.files.container import container_bytes, read_container
from byoc_mlir.runtime.files.serialise import Blob, Json, decode, encode
from byoc_mlir.runtime.files.shared_object import SharedCode
from byoc_mlir.runtime.files.stored import decode_program, encode_program
from byoc_mlir.runtime.load import load_artifact
from byoc_mlir.runtime.program import ObjectCode, Program

Reduced: TypeAlias = tuple[Callable[..., Executable], tuple[Any, ...]]

_NAME = "the pickle"
_LIBRARIES = Path(sys.prefix, "lib")


def reduced(program: Program, exporter: Exporter | None) -> Reduced:
    """A function and its arguments that make the executable of a program again, as pickle wants.

    The function raises what `load` raises.

    Args:
        exporter: the executable's.
    """
    if isinstance(program.code, SharedCode):
        return _from_artifact, (bytes(program.code.content), program.threads)
    blobs: list[Blob] = []
    document: dict[str, Json] = {
        "program": encode_program(program, blobs),
        "code": encode(program.code, blobs),
    }
    return _from_container, (container_bytes(document, blobs), exporter)


def _from_artifact(content: bytes, threads: int) -> Executable:
    with _file(content) as file:
        return load_artifact(file, _NAME, _LIBRARIES, threads)


def _from_container(content: bytes, exporter: Exporter | None) -> Executable:
    with _file(content) as file:
        container = read_container(file, _NAME)
    document, blobs = container.document, container.blobs
    code = decode(ObjectCode, document.get("code"), blobs)
    program = decode_program(document.get("program"), blobs, code, _NAME, _LIBRARIES)
    return CompiledExecutable(program, exporter)


def _file(content: bytes) -> BinaryIO:
    """A file in memory: what is mapped from it is aligned, and the dynamic loader can open it."""
    file = os.fdopen(os.memfd_create("byoc_pickle"), "w+b")
    file.write(content)
    file.flush()
    return file
