"""Models in stages as documents of a container: their programs, and how they follow each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from byoc_mlir.errors import InvalidArtifactError
from byoc_mlir.runtime.executables.sized import SizedProgram
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import ReportRow
from byoc_mlir.runtime.staged_program import (
    AnyProgram,
    LoopNames,
    LoopProgram,
    ProgramStage,
    StagedProgram,
)
from byoc_mlir.tensors import TensorInfo, Trim

STAGES = "stages"
"""Under which a document has how programs follow each other."""
PROGRAMS = "programs"
"""Under which it has the programs."""


@dataclass(frozen=True)
class StoredLoop:
    """A loop and its body."""

    row: ReportRow
    names: LoopNames
    constants: Mapping[str, Array]
    body: StoredPart


@dataclass(frozen=True)
class StoredPart:
    """One of the three: the number of a program, a loop, or stages."""

    program: int | None = None
    loop: StoredLoop | None = None
    stages: StoredStages | None = None


@dataclass(frozen=True)
class StoredStage:
    """A stage, with what it reads and gives."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    part: StoredPart
    trims: Mapping[str, Trim]
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class StoredStages:
    """Stages in order."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    stages: tuple[StoredStage, ...]

    @staticmethod
    def of(
        staged: StagedProgram, numbered: Callable[[Program | SizedProgram], int]
    ) -> StoredStages:
        """The stages of a program.

        Args:
            numbered: gives each program its number.
        """

        def stored(part: AnyProgram) -> StoredPart:
            if isinstance(part, StagedProgram):
                return StoredPart(stages=StoredStages.of(part, numbered))
            if isinstance(part, LoopProgram):
                loop = StoredLoop(part.row, part.names, part.constants, stored(part.body))
                return StoredPart(loop=loop)
            return StoredPart(program=numbered(part))

        stages = tuple(
            StoredStage(one.inputs, one.outputs, stored(one.part), one.trims, one.sizes)
            for one in staged.stages
        )
        return StoredStages(staged.inputs, staged.outputs, stages)

    def program(self, programs: Sequence[Program | SizedProgram]) -> StagedProgram:
        """The stages, with these programs.

        Raises:
            InvalidArtifactError: one is missing.
        """

        def part(stored: StoredPart) -> AnyProgram:
            if stored.stages is not None:
                return stored.stages.program(programs)
            if stored.loop is not None:
                loop = stored.loop
                return LoopProgram(loop.row, loop.names, loop.constants, part(loop.body))
            if stored.program is None or not 0 <= stored.program < len(programs):
                raise InvalidArtifactError(f"the stages have no program {stored.program}")
            return programs[stored.program]

        stages = tuple(
            ProgramStage(one.inputs, one.outputs, part(one.part), one.trims, one.sizes)
            for one in self.stages
        )
        return StagedProgram(self.inputs, self.outputs, stages)
