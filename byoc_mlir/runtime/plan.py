"""Plans: what a model becomes is a tree of nodes. They are data, and nothing of them runs here.

`runtime.execution` runs them, `runtime.files` writes and reads them, `artifact` makes C of them. A
node without programs, or without a part, gets them when it is known for which sizes, values or
structures; a plan that is written to a file has all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.tensors import Kind, MapRow, TensorInfo, Trim


@dataclass(frozen=True)
class Leaf:
    """A part that runs in one piece: one native program, or several for different sizes."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    programs: tuple[Program, ...] = ()
    """The program that was used last comes last."""


@dataclass(frozen=True)
class PlanStage:
    """A stage of a model; it reads and gives values by name."""

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...] = ()
    """The node that was used last comes last. A stage has more than one where its inputs' values
    are sizes once, and other numbers another time."""
    trims: Mapping[str, Trim] = field(default_factory=dict[str, Trim])
    """By result: how much of it counts."""
    sizes: tuple[str, ...] = ()
    """Inputs whose values are sizes. As long as they can be, the stage takes arrays of such
    shapes in their place (`size_input`), so that one program serves them all."""


@dataclass(frozen=True)
class Staged:
    """Stages in order: a model is split where shapes depend on values that it computes."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    stages: tuple[PlanStage, ...]


@dataclass(frozen=True)
class LoopNames:
    """Names of values in a `Loop` of ONNX and in its body; an empty name is an absent value."""

    trip_count: str
    condition: str
    initial: tuple[str, ...]
    number: str
    active: str
    states: tuple[str, ...]
    captured: tuple[str, ...]
    """Values that the body reads beside those that it is given."""
    goes_on: str
    updates: tuple[str, ...]
    rows: tuple[str, ...]
    """Values that an iteration adds to those that are collected."""
    results: tuple[str, ...]
    """Outputs of the loop: what is carried last, then what is collected."""


@dataclass(frozen=True)
class Loop:
    """A loop as a stage: its body is run once for each iteration."""

    row: ReportRow
    names: LoopNames
    constants: Mapping[str, Array]
    """Inputs and outputs that are known already, by name."""
    outputs: tuple[str, ...]
    body: Node | None = None


@dataclass(frozen=True)
class Interpreted:
    """A part whose nodes on strings an interpreter runs, in Python. No file holds it."""

    outputs: tuple[str, ...]
    report: Report


@dataclass(frozen=True)
class Structured:
    """A model that takes or gives lists of arrays, `None`, or maps: a node for each structure."""

    inputs: tuple[TensorInfo, ...]
    kinds: Mapping[str, Kind]
    """By output, in order."""
    maps: Mapping[str, tuple[MapRow, ...]]
    """For each input that is a map: the tensors that are made of it."""
    keys: Mapping[str, tuple[int, ...] | tuple[str, ...]]
    """For each output of maps: the key of each column of the tensor that it is made of."""
    nodes: tuple[Node, ...] = ()
    """The node that was used last comes last."""


Node: TypeAlias = Leaf | Staged | Loop | Interpreted | Structured


def leaf_of(program: Program) -> Leaf:
    """Returns the plan of a model that is one program."""
    return Leaf(program.inputs, tuple(spec.name for spec in program.outputs), (program,))
