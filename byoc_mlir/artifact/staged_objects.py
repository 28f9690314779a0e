"""Object files of a model with segments: its programs, and the C code that calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from byoc_mlir.artifact.objects import ProgramParts, copy_own
from byoc_mlir.artifact.stages import StageTables, constant_symbol, part_symbol
from byoc_mlir.artifact.tables import data_assembly, write_weights
from byoc_mlir.artifact.toolchain import Toolchain
from byoc_mlir.runtime.files.shared_object import program_table
from byoc_mlir.runtime.plan import Staged
from byoc_mlir.runtime.program import Program

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
            program.write_object(inner, list(program.symbols.values()))
            objects.append(f"{inner.name}/model.o")
        symbols = {constant_symbol(n): array for n, array in enumerate(self.tables.constants)}
        write_weights(folder, symbols, [])
        (folder / "data.s").write_text(data_assembly(symbols, [], [], self.first.cpu))
        (folder / "stages.h").write_text(self.tables.text(self.name))
        for file in _SOURCES:
            copy_own(file, folder)
        return ["stages.c", "data.s", *objects]
