"""Writing a compiled model as a shared object or as an object file."""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from byoc_mlir.artifact.header import header
from byoc_mlir.artifact.interface import AnyProgram, Interface
from byoc_mlir.artifact.names import checked_name, model_name
from byoc_mlir.artifact.tables import (
    STUBS,
    data_assembly,
    imports,
    tables_header,
    write_weights,
)
from byoc_mlir.artifact.toolchain import Toolchain, run_tool
from byoc_mlir.errors import ExportError
from byoc_mlir.runtime.container import write_container
from byoc_mlir.runtime.program import ObjectCode, Program, PythonRegion
from byoc_mlir.runtime.serialise import Blob, encode
from byoc_mlir.runtime.shared_object import TABLE_SYMBOL
from byoc_mlir.runtime.stored import encode_program
from byoc_mlir.runtime.stored_sizes import SIZES, StoredSizes

_SOURCES = ("glue.c", "data.s")
_OBJECT = "code{}.o"
_COMPILE = ("-O2", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-pthread")
_LIBRARIES = ("-lm", "-ldl", "-pthread")


@dataclass(frozen=True)
class _Parts:
    """A program on its way to a file, the C prefix it gets, and what makes the file."""

    interface: Interface
    code: ObjectCode
    name: str
    tools: Toolchain

    @property
    def program(self) -> Program:
        """The program, for the hints of its sizes if it takes some."""
        return self.interface.program


def export_library(
    model: AnyProgram, path: Path, name: str | None, triple: str | None = None
) -> Path:
    """Writes one shared object that holds everything, and a C header next to it.

    Args:
        model: the program to write.
        path: of the shared object, `model.so`; the header is `model.h`.
        name: the prefix of the C functions; left out, it is made of the file's name.
        triple: of the machine that the program is for; left out, it is this one.

    Returns:
        The header's path.

    Raises:
        ExportError: the program cannot be exported.
        ToolchainError: there is no C compiler, or it refuses its input.
    """
    parts = _parts(model, path, name, triple)
    program = parts.program
    for region in program.python_regions:
        warnings.warn(f"{_runs_in_python(region)}, only byoc_mlir.load can", stacklevel=3)
    with tempfile.TemporaryDirectory(prefix="byoc_export_") as folder:
        library = _link_library(parts, Path(folder), path.name)
        blobs: list[Blob] = []
        document = encode_program(program, blobs)
        if parts.interface.sized is not None:
            document[SIZES] = encode(StoredSizes.of(parts.interface.sized), blobs)
        with library.open("rb") as content:
            write_container(path, document, blobs, content)
    return _write_header(parts, path)


def export_object(
    model: AnyProgram, path: Path, name: str | None, triple: str | None = None
) -> Path:
    """Writes one relocatable object file for C programs, and a C header next to it.

    The program links it with `-lm -ldl -pthread`. Arguments and result as for `export_library`.

    Raises:
        ExportError: the program cannot be exported, or a part of it runs in Python.
        ToolchainError: there is no C compiler or no `objcopy`, or one refuses its input.
    """
    parts = _parts(model, path, name, triple)
    program = parts.program
    if program.python_regions:
        region = program.python_regions[0]
        raise ExportError(
            f"{_runs_in_python(region)}; export_library writes a file for byoc_mlir.load, or"
            " compile without that target"
        )
    with tempfile.TemporaryDirectory(prefix="byoc_export_") as folder:
        joined = _link_object(parts, Path(folder))
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(joined, path)
    return _write_header(parts, path)


def _runs_in_python(region: PythonRegion) -> str:
    return (
        f"region {region.region} runs in Python, through '{region.loader}', so no C program can"
        " use the model"
    )


def _parts(model: AnyProgram, path: Path, name: str | None, triple: str | None) -> _Parts:
    interface = Interface.of(model)
    program = interface.program
    assert isinstance(program.code, ObjectCode), "what comes from a file has no exporter"
    machine = (sys.platform, program.cpu.architecture)
    if machine not in [("linux", architecture) for architecture in STUBS]:
        accepted = " and ".join(STUBS)
        raise ExportError(f"exporting works on Linux, for {accepted}; this is {' '.join(machine)}")
    prefix = model_name(path.stem) if name is None else checked_name(name)
    return _Parts(interface, program.code, prefix, Toolchain.of(triple))


def _link_library(parts: _Parts, folder: Path, soname: str) -> Path:
    _write_sources(parts, folder)
    exported = f"{{ global: {TABLE_SYMBOL}; {parts.name}_*; local: *; }};\n"
    (folder / "exports.map").write_text(exported)
    linking = [
        "-shared",
        "-Wl,--version-script=exports.map",
        "-Wl,-z,defs",
        f"-Wl,-soname,{soname}",
    ]
    sources = [*_SOURCES, *_object_names(parts)]
    output = "model.so"
    run_tool(
        [*parts.tools.compiler, *_COMPILE, *linking, *sources, *_LIBRARIES, "-o", output], folder
    )
    return folder / output


def _link_object(parts: _Parts, folder: Path) -> Path:
    _write_sources(parts, folder)
    compiler = parts.tools.compiler
    joined, output = "joined.o", "model.o"
    for source in _SOURCES:
        run_tool([*compiler, *_COMPILE, "-c", source, "-o", f"{source}.o"], folder)
    objects = [*(f"{source}.o" for source in _SOURCES), *_object_names(parts)]
    run_tool([*compiler, "-r", "-nostdlib", *objects, "-o", joined], folder)
    kept = f"--keep-global-symbol={parts.name}_*"
    run_tool([parts.tools.objcopy, "--wildcard", kept, joined, output], folder)
    return folder / output


def _write_sources(parts: _Parts, folder: Path) -> None:
    program, weights = parts.program, parts.code.weights
    images: Sequence[bytes] = list(dict.fromkeys(item.image() for item in program.library_symbols))
    imported = imports(program, images)
    write_weights(folder, weights, images)
    for object_name, content in zip(_object_names(parts), parts.code.files, strict=True):
        (folder / object_name).write_bytes(content)
    (folder / "tables.h").write_text(tables_header(parts.interface, parts.name, imported, images))
    (folder / "data.s").write_text(data_assembly(weights, imported, images, program.cpu))
    shutil.copy(Path(__file__).parent / "glue.c", folder)


def _object_names(parts: _Parts) -> list[str]:
    return [_OBJECT.format(number) for number in range(len(parts.code.files))]


def _write_header(parts: _Parts, path: Path) -> Path:
    file = path.with_suffix(".h")
    file.write_text(header(parts.interface, parts.name))
    return file
