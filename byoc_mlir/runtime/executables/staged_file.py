"""Executables of programs that were read from a file, of any kind."""

from __future__ import annotations

from collections.abc import Mapping

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.executables.compiled import CompiledExecutable
from byoc_mlir.runtime.executables.looped import LoopedExecutable
from byoc_mlir.runtime.executables.one_program import sized_executable
from byoc_mlir.runtime.executables.sized import SizedProgram
from byoc_mlir.runtime.executables.staged import ExecutableStage, StagedExecutable, taken
from byoc_mlir.runtime.program import Array
from byoc_mlir.runtime.staged_program import AnyProgram, LoopProgram, ProgramStage, StagedProgram


def executable_of(program: AnyProgram, outputs: tuple[str, ...] = ()) -> Executable:
    """The executable of a program.

    Args:
        outputs: the names of what a loop gives.
    """
    if isinstance(program, SizedProgram):
        return sized_executable(program)
    if isinstance(program, LoopProgram):
        return _looped(program, outputs)
    if isinstance(program, StagedProgram):
        stages = tuple(map(_stage, program.stages))
        return StagedExecutable(program.inputs, program.outputs, stages)
    return CompiledExecutable(program)


def _stage(stage: ProgramStage) -> ExecutableStage:
    executable = executable_of(stage.part, stage.outputs)  # what is wrong with it is found now

    def compiled(arrays: Mapping[str, Array]) -> Executable:
        said = taken(arrays).keys() & set(stage.sizes)
        if said:
            raise InvalidInputError(
                f"the file has no program for sizes below 0, found in {', '.join(said)}"
            )
        return executable

    return ExecutableStage(stage.inputs, compiled, stage.trims, stage.sizes)


def _looped(program: LoopProgram, outputs: tuple[str, ...]) -> LoopedExecutable:
    body = executable_of(program.body)

    def compiled(given: Mapping[str, Array], changing: Mapping[str, set[int]]) -> Executable:
        if any(changing.values()):
            listed = ", ".join(f"{name} along {sorted(axes)}" for name, axes in changing.items())
            raise InvalidInputError(
                f"the file has no program for iterations of '{program.row.node}' that change"
                f" {listed}; export the model after a run in which they do"
            )
        return body

    return LoopedExecutable(program.row, program.names, program.constants, outputs, {}, compiled)
