"""Programs in pickles: the same containers as in files, with the same checks."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

from byoc_mlir.errors import InvalidArtifactError
from byoc_mlir.runtime.files.artifact import read_artifact
from byoc_mlir.runtime.files.container import container_bytes, read_container
from byoc_mlir.runtime.files.serialise import Blob, Json, decode, encode
from byoc_mlir.runtime.files.shared_object import SharedCode
from byoc_mlir.runtime.files.stored import decode_program, encode_program
from byoc_mlir.runtime.plan import Leaf, leaf_of
from byoc_mlir.runtime.program import ObjectCode, Program

_NAME = "the pickle"
_LIBRARIES = Path(sys.prefix, "lib")


def packed(program: Program) -> tuple[bytes, int | None]:
    """Returns a program as bytes, and its number of threads if it was loaded from an artifact."""
    if isinstance(program.code, SharedCode):
        return bytes(program.code.content), program.threads
    blobs: list[Blob] = []
    document: dict[str, Json] = {
        "program": encode_program(program, blobs),
        "code": encode(program.code, blobs),
    }
    return container_bytes(document, blobs), None


def unpacked(content: bytes, threads: int | None) -> Leaf:
    """Returns the program that `packed` wrote, as a plan; raises as `load`."""
    file = _file(content)  # open as long as code of it is loaded
    if threads is not None:
        plan = read_artifact(file, _NAME, _LIBRARIES, threads)
        if not isinstance(plan, Leaf):
            raise InvalidArtifactError(f"'{_NAME}' has more than one program")
        return plan
    container = read_container(file, _NAME)
    document, blobs = container.document, container.blobs
    code = decode(ObjectCode, document.get("code"), blobs)
    return leaf_of(decode_program(document.get("program"), blobs, code, _NAME, _LIBRARIES))


def _file(content: bytes) -> BinaryIO:
    """Returns an in-memory file with the content; its mappings are aligned, and the dynamic loader
    can open it.
    """
    file = os.fdopen(os.memfd_create("byoc_pickle"), "w+b")
    file.write(content)
    file.flush()
    return file
