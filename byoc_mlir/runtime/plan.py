"""Plans: trees of nodes that describe a compiled model. They are data; no code here runs them.

`runtime.execution` runs plans, `runtime.files` writes and reads them, and `artifact` translates
them to C. A node may lack programs or parts at first; it gets them when its sizes, values or
structures are known. A plan in a file is complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.tensors import Kind, MapRow, TensorInfo, Trim

NOT_COMPILED = "nothing is compiled yet: the first inputs determine the shapes; call run"
"""Message about a plan without programs."""


@dataclass(frozen=True)
class Leaf:
    """Part that runs as a whole: one native program, or several for different sizes."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[str, ...]
    programs: tuple[Program, ...] = ()
    """Programs; the program used last is the last one."""


@dataclass(frozen=True)
class PlanStage:
    """Segment of a model; it reads and defines values by name."""

    inputs: tuple[str, ...]
    nodes: tuple[Node, ...] = ()
    """Nodes; the one that was used last comes last. A segment has several nodes if its inputs'
    values are sizes in some runs, and other numbers in further runs."""
    trims: Mapping[str, Trim] = field(default_factory=dict[str, Trim])
    """Trims by result: the number of its valid elements along an axis."""
    sizes: tuple[str, ...] = ()
    """Inputs whose values are sizes. As long as the values are valid sizes, arrays of such shapes
    (`size_input`) replace them, so that one program supports them all."""


@dataclass(frozen=True)
class Staged:
    """Model that is split into segments at shapes that depend on computed values."""

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
    """Values of the outer scope that the body reads."""
    goes_on: str
    updates: tuple[str, ...]
    rows: tuple[str, ...]
    """Values that an iteration appends to the scan outputs."""
    results: tuple[str, ...]
    """Outputs of the loop: the final carried values, then the scan outputs."""


@dataclass(frozen=True)
class Loop:
    """Loop as a segment: its body runs once for each iteration."""

    row: ReportRow
    names: LoopNames
    constants: Mapping[str, Array]
    """Constant inputs and outputs, by name."""
    outputs: tuple[str, ...]
    body: Node | None = None


@dataclass(frozen=True)
class Interpreted:
    """Part with nodes on strings, which an interpreter runs in Python. No file holds it."""

    outputs: tuple[str, ...]
    report: Report


@dataclass(frozen=True)
class Structured:
    """Model whose inputs or outputs are lists of arrays, `None`, or maps: a node for each
    structure.
    """

    inputs: tuple[TensorInfo, ...]
    kinds: Mapping[str, Kind]
    """Kinds by output, in order."""
    maps: Mapping[str, tuple[MapRow, ...]]
    """Tensors that replace each input that is a map."""
    keys: Mapping[str, tuple[int, ...] | tuple[str, ...]]
    """Keys of the columns of the tensor for each output of maps."""
    nodes: tuple[Node, ...] = ()
    """Nodes; the one that was used last comes last."""


Node: TypeAlias = Leaf | Staged | Loop | Interpreted | Structured


def leaf_of(program: Program) -> Leaf:
    """Returns the plan of a model that consists of one program.

    The sizes of its inputs have the names of the model; the program quotes those that are no
    identifiers.
    """
    texts = {} if program.sizes is None else program.sizes.texts
    names: dict[int | str, str] = {text: name for name, text in texts.items()}
    inputs = [
        replace(info, shape=tuple(names.get(size, size) for size in info.shape))
        for info in program.inputs
    ]
    return Leaf(tuple(inputs), tuple(spec.name for spec in program.outputs), (program,))
