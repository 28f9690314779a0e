"""Object files of one program: its code, its weights, and the C glue around both."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from byoc_mlir.artifact.interface import Interface
from byoc_mlir.artifact.tables import (
    STUBS,
    data_assembly,
    imports,
    tables_header,
    write_weights,
)
from byoc_mlir.artifact.toolchain import Toolchain, run_tool
from byoc_mlir.errors import ExportError
from byoc_mlir.runtime.program import ObjectCode, Program

COMPILE = ("-O2", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-pthread")
"""Flags of the C compiler."""

_SOURCES = ("glue.c", "data.s")
_HEADERS = ("failure.h", "part.h")
_OBJECT = "code{}.o"


@dataclass(frozen=True)
class ProgramParts:
    """Program to be exported, with its C prefix and the tools."""

    interface: Interface
    code: ObjectCode
    name: str
    symbols: Mapping[str, str]
    """Symbols of the program's tables, by their names in `glue.c`."""
    tools: Toolchain

    @staticmethod
    def of(
        program: Program, name: str, symbols: Mapping[str, str], tools: Toolchain
    ) -> ProgramParts:
        """Returns the parts of a program.

        Raises:
            ExportError: the program's machine is not supported by exports.
        """
        assert isinstance(program.code, ObjectCode), "what comes from a file has no exporter"
        machine = (sys.platform, program.cpu.architecture)
        if machine not in [("linux", architecture) for architecture in STUBS]:
            raise ExportError(
                f"exporting works on Linux, for {' and '.join(STUBS)}; this is {' '.join(machine)}"
            )
        return ProgramParts(Interface.of(program), program.code, name, symbols, tools)

    @property
    def program(self) -> Program:
        """Returns the program."""
        return self.interface.program

    def write_sources(self, folder: Path) -> Sequence[str]:
        """Writes the sources of the program's objects to a folder; returns the file names."""
        program, weights = self.program, self.code.weights
        images = list(dict.fromkeys(item.image() for item in program.library_symbols))
        imported = imports(program, images)
        tables = tables_header(self.interface, self.name, imported, images, self.symbols)
        write_weights(folder, weights, images)
        objects = [_OBJECT.format(number) for number in range(len(self.code.files))]
        for object_name, content in zip(objects, self.code.files, strict=True):
            (folder / object_name).write_bytes(content)
        (folder / "tables.h").write_text(tables)
        (folder / "data.s").write_text(data_assembly(weights, imported, images, program.cpu))
        for file in ("glue.c", *_HEADERS):
            copy_own(file, folder)
        return [*_SOURCES, *objects]


def write_object(tools: Toolchain, folder: Path, files: Sequence[str], kept: Sequence[str]) -> Path:
    """Links sources and objects in a folder into one object file.

    Args:
        kept: symbols that stay global, as shell patterns.
    """
    joined, output = "joined.o", "model.o"
    sources = [file for file in files if not file.endswith(".o")]
    for source in sources:
        run_tool([*tools.compiler, *COMPILE, "-c", source, "-o", f"{source}.o"], folder)
    objects = [file if file.endswith(".o") else f"{file}.o" for file in files]
    run_tool([*tools.compiler, "-r", "-nostdlib", *objects, "-o", joined], folder)
    keep = [f"--keep-global-symbol={symbol}" for symbol in kept]
    run_tool([tools.objcopy, "--wildcard", *keep, joined, output], folder)
    return folder / output


def write_shared_object(
    tools: Toolchain, folder: Path, files: Sequence[str], kept: Sequence[str], soname: str
) -> Path:
    """Links files in a folder into one shared object; the arguments are as for `write_object`."""
    exported = "".join(f" {symbol};" for symbol in kept)
    (folder / "exports.map").write_text(f"{{ global:{exported} local: *; }};\n")
    linking = [
        "-shared",
        "-Wl,--version-script=exports.map",
        "-Wl,-z,defs",
        f"-Wl,-soname,{soname}",
    ]
    libraries = ["-lm", "-ldl", "-pthread"]
    output = "model.so"
    run_tool([*tools.compiler, *COMPILE, *linking, *files, *libraries, "-o", output], folder)
    return folder / output


def copy_own(name: str, folder: Path) -> None:
    """Copies a file of this package, which may be in an archive, to a folder."""
    content = pkgutil.get_data("byoc_mlir.artifact", name)
    assert content is not None
    (folder / name).write_bytes(content)
