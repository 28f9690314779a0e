"""Compiled programs as documents of a container, without their native code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from byoc_mlir.dims import parse_size
from byoc_mlir.errors import InvalidArtifactError, UndecidedSizeError
from byoc_mlir.runtime.devices import explaining_absence
from byoc_mlir.runtime.files.serialise import Blob, Json, decode_fields, encode_fields
from byoc_mlir.runtime.program import Code, Program
from byoc_mlir.runtime.system.libraries import located

_CODE = "code"
_MAX_SLOTS = 1 << 32
_MAX_THREADS = 1 << 16
_MAX_SIZE = 1 << 47
"""Maximum size: larger ones do not fit in an address space."""


def encode_program(program: Program, blobs: list[Blob]) -> dict[str, Json]:
    """Returns the document of a program; binary data is appended to `blobs`."""
    symbols = tuple(replace(item, library=item.image()) for item in program.library_symbols)
    return encode_fields(replace(program, library_symbols=symbols), blobs, without=_CODE)


def decode_program(
    document: Json, blobs: Sequence[memoryview], code: Code, name: str, folder: Path
) -> Program:
    """Returns the program of a document, checked, with its libraries located on this machine.

    Args:
        code: the program's native code, which this function only stores.
        name: name of the file in errors.
        folder: folder in which to look for the program's libraries, besides the usual ones.

    Raises:
        InvalidArtifactError: the document describes no program.
        IncompatibleArtifactError: the processor lacks a feature, or a library is missing or of
            another version.
        DeviceError: this machine lacks a device.
    """
    program = decode_fields(Program, document, blobs, {_CODE: code})
    _check_shapes(program, name)
    _check_sizes(program, name)
    program.cpu.check(f"'{name}'")
    with explaining_absence(program.devices):
        libraries = tuple(located(library, folder) for library in program.libraries)
    return replace(program, libraries=libraries)


def _check_shapes(program: Program, name: str) -> None:
    """Checks that the sizes in shapes are numbers or symbolic sizes as text."""
    tensors = [*program.inputs, *program.outputs]
    if program.sizes is None and not all(one.is_static for one in tensors):
        raise InvalidArtifactError(f"'{name}' has a program without symbols, which a shape names")
    try:
        for size in (size for one in tensors for size in one.shape):
            parse_size(size)
    except UndecidedSizeError as error:
        raise InvalidArtifactError(f"'{name}' has no size in a shape: {error}") from error


def _check_sizes(program: Program, name: str) -> None:
    sizes = [program.state_slots, program.context_slots, program.arena_bytes]
    tensors = [*program.inputs, *program.outputs]
    for region in program.python_regions:
        tensors += [*region.inputs, *region.outputs]
    sizes += [size for one in tensors for size in one.shape if isinstance(size, int)]
    if min(sizes) < 0 or program.threads < 1:
        raise InvalidArtifactError(f"'{name}' has a size or a number of threads below zero")
    slots = max(program.state_slots, program.context_slots)
    if max(sizes) > _MAX_SIZE or slots > _MAX_SLOTS or program.threads > _MAX_THREADS:
        raise InvalidArtifactError(f"'{name}' has a size that no machine has")
