"""What a model that runs in stages is exported as: its programs, and how they follow each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from byoc_mlir.runtime.executables.sized import SizedProgram
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import ReportRow
from byoc_mlir.tensors import TensorInfo, Trim


@dataclass(frozen=True)
class LoopNames:
    """What a `Loop` of ONNX and its body call values; an empty name is one that is not there."""

    trip_count: str
    condition: str
    initial: tuple[str, ...]
    number: str
    active: str
    states: tuple[str, ...]
    captured: tuple[str, ...]
    """What the body reads beside what it is given."""
    goes_on: str
    updates: tuple[str, ...]
    rows: tuple[str, ...]
    """What an iteration adds to what is collected."""
    results: tuple[str, ...]
    """What the loop gives: what is carried last, then what is collected."""


@dataclass(frozen=True)
class LoopProgram:
    """A loop as a stage: its body is called for each iteration."""

    row: ReportRow
    names: LoopNames
    constants: Mapping[str, Array]
    body: AnyProgram


@dataclass(frozen=True)
class ProgramStage:
    """A stage, with what it reads and gives by name."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    part: AnyProgram
    trims: Mapping[str, Trim]
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class StagedProgram:
    """Stages in order."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    stages: tuple[ProgramStage, ...]


AnyProgram: TypeAlias = Program | SizedProgram | StagedProgram | LoopProgram
"""A model, or a part of one."""
