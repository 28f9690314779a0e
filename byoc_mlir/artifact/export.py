"""Export of a compiled model as a shared object or as an object file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from byoc_mlir.artifact.header import framed, header, in_comment
from byoc_mlir.artifact.names import checked_name, model_name
from byoc_mlir.artifact.objects import ProgramParts, copy_own, write_object, write_shared_object
from byoc_mlir.artifact.staged_interface import StagedInterface
from byoc_mlir.artifact.stages import StageTables, constant_symbol, part_symbol
from byoc_mlir.artifact.tables import data_assembly, write_weights
from byoc_mlir.artifact.toolchain import Toolchain
from byoc_mlir.errors import ExportError
from byoc_mlir.runtime import plan
from byoc_mlir.runtime.files.container import write_container
from byoc_mlir.runtime.files.serialise import Blob
from byoc_mlir.runtime.files.shared_object import TABLE_SYMBOL, program_table
from byoc_mlir.runtime.files.stored_plan import PLAN, encode_plan
from byoc_mlir.runtime.plan import Leaf, Node, Staged
from byoc_mlir.runtime.program import Program, PythonRegion
from byoc_mlir.warned import warn_user

_SOURCES = ("stages.c", "failure.h", "part.h")


@dataclass(frozen=True)
class StagedParts:
    """Model with segments to be exported, with its C prefix and the tools."""

    tables: StageTables
    programs: Sequence[ProgramParts]
    name: str
    tools: Toolchain

    @staticmethod
    def of(plan: Staged, name: str, tools: Toolchain) -> StagedParts:
        """Returns the parts of a model.

        Raises:
            ExportError: as `ProgramParts.of`.
        """
        tables = StageTables(plan)
        programs = [
            ProgramParts.of(
                *(program, "part"),
                {"TABLE_NAME": program_table(number), "PART_NAME": part_symbol(number)},
                tools,
            )
            for number, program in enumerate(tables.programs)
        ]
        return StagedParts(tables, programs, name, tools)

    @property
    def first(self) -> Program:
        """Returns a program of the model; all programs are for the same machine."""
        return self.programs[0].program

    def write_sources(self, folder: Path) -> Sequence[str]:
        """Writes the sources of the model's objects to a folder; returns the names of its files."""
        objects: list[str] = []
        for number, program in enumerate(self.programs):
            inner = folder / f"program_{number}"
            inner.mkdir()
            kept = list(program.symbols.values())
            write_object(self.tools, inner, program.write_sources(inner), kept)
            objects.append(f"{inner.name}/model.o")
        symbols = {constant_symbol(n): array for n, array in enumerate(self.tables.constants)}
        write_weights(folder, symbols, [])
        (folder / "data.s").write_text(data_assembly(symbols, [], [], self.first.cpu))
        (folder / "stages.h").write_text(self.tables.text(self.name))
        for file in _SOURCES:
            copy_own(file, folder)
        return ["stages.c", "data.s", *objects]


_Parts: TypeAlias = ProgramParts | StagedParts


def export_library(model: Node, path: Path, name: str | None, triple: str | None = None) -> Path:
    """Writes one shared object with code, weights and runtime, and a C header next to it.

    Args:
        model: the complete plan to write.
        path: path of the shared object, `model.so`; the header is `model.h`.
        name: prefix of the C functions; by default, it is derived from the file's name.
        triple: machine that the program is for; by default, this machine.

    Returns:
        The header's path.

    Raises:
        ExportError: the program cannot be exported.
        ToolchainError: there is no C compiler, or it fails.
    """
    parts = _parts(model, path, name, triple)
    for region in _python_regions(parts):
        warn_user(f"{_runs_in_python(region)}, only byoc_mlir.load can")
    with tempfile.TemporaryDirectory(prefix="byoc_export_") as place:
        folder = Path(place)
        kept = [f"{TABLE_SYMBOL}*", f"{parts.name}_*"]
        files = parts.write_sources(folder)
        library = write_shared_object(parts.tools, folder, files, kept, path.name)
        blobs: list[Blob] = []
        document = encode_plan(model, blobs)
        with library.open("rb") as content:
            write_container(path, {PLAN: document}, blobs, content)
    return _write_header(parts, path)


def export_object(model: Node, path: Path, name: str | None, triple: str | None = None) -> Path:
    """Writes one relocatable object file for C programs, and a C header next to it.

    A program links it with `-lm -ldl -pthread`. Arguments and result are those of `export_library`.

    Raises:
        ExportError: the program cannot be exported, or a part of it runs in Python.
        ToolchainError: there is no C compiler or no `objcopy`, or one of them fails.
    """
    parts = _parts(model, path, name, triple)
    for region in _python_regions(parts):
        raise ExportError(
            f"{_runs_in_python(region)}; export_library writes a file for byoc_mlir.load, or"
            " compile without that target"
        )
    with tempfile.TemporaryDirectory(prefix="byoc_export_") as place:
        folder = Path(place)
        joined = write_object(parts.tools, folder, parts.write_sources(folder), [f"{parts.name}_*"])
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(joined, path)
    return _write_header(parts, path)


def _runs_in_python(region: PythonRegion) -> str:
    return (
        f"region {region.region} runs in Python, through '{region.loader}', so no C program can"
        " use the model"
    )


def _python_regions(parts: _Parts) -> Iterator[PythonRegion]:
    for one in parts.programs if isinstance(parts, StagedParts) else [parts]:
        yield from one.program.python_regions


def _parts(model: Node, path: Path, name: str | None, triple: str | None) -> _Parts:
    prefix = model_name(path.stem) if name is None else checked_name(name)
    tools = Toolchain.of(triple)
    if isinstance(model, Leaf):
        symbols = {"TABLE_NAME": program_table(0)}
        return ProgramParts.of(model.programs[-1], prefix, symbols, tools)
    assert isinstance(model, plan.Staged), "others are parts of a model, or have no file"
    return StagedParts.of(model, prefix, tools)


def _write_header(parts: _Parts, path: Path) -> Path:
    file = path.with_suffix(".h")
    if isinstance(parts, StagedParts):
        text = staged_header(parts.tables.interface, parts.name, parts.first.threads)
    else:
        text = header(parts.interface, parts.name)
    file.write_text(text)
    return file


def staged_header(interface: StagedInterface, name: str, threads: int) -> str:
    """Returns the text of `model.h`; `name` is the prefix of its declarations."""
    return framed(
        [
            "/* Runs the model. Tensors are dense and row-major. Sizes of outputs are known when",
            " * they are computed: each output is set to memory that holds it, for the caller to",
            " * free, and its shape is written to an array, unless that is a null pointer. Nothing",
            " * is set where the result is not 0.",
            " *",
            *_described(interface),
            " */",
            f"int {name}_run({', '.join(interface.declared) or 'void'});",
            "",
            "/* Frees an output; a null pointer is accepted. */",
            f"void {name}_free(void *output);",
        ],
        name,
        threads,
    )


def _described(interface: StagedInterface) -> Iterator[str]:
    sizes = interface.sizes
    for info, name in zip(interface.inputs, interface.input_names, strict=True):
        shape = ", ".join(
            str(size) if isinstance(size, int) else sizes[size] for size in info.shape
        )
        yield f" *   {name}: input '{in_comment(info.name)}', {info.dtype.name} [{shape}]"
    for info, name in zip(interface.outputs, interface.output_names, strict=True):
        quoted = in_comment(info.name)
        yield f" *   {name}: output '{quoted}', {info.dtype.name}, {len(info.shape)} sizes"
