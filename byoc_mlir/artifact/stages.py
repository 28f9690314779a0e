"""Generator of `stages.h`, the model-dependent part of `stages.c`; values are identified by
numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from byoc_mlir.artifact.staged_interface import StagedInterface, symbols_of
from byoc_mlir.artifact.tables import c_array, defines, error_codes, quoted
from byoc_mlir.runtime import plan
from byoc_mlir.runtime.plan import Leaf, Loop, PlanStage
from byoc_mlir.runtime.program import Array, Program
from byoc_mlir.tensors import MOST_SIZES, TensorInfo, size_input

_Scope = dict[str, int]
"""Numbers of values by name."""


@dataclass(frozen=True)
class _Value:
    dtype: np.dtype[np.generic]
    rank: int


@dataclass
class StageTables:
    """Values, programs and segments of a model, with their numbers in C."""

    plan: plan.Staged
    programs: list[Program] = field(default_factory=list[Program])
    constants: list[Array] = field(default_factory=list[Array])
    outputs: list[int] = field(default_factory=list[int])
    """Values that are outputs of the model."""
    _values: list[_Value] = field(default_factory=list[_Value])
    _constant_values: list[int] = field(default_factory=list[int])
    _lines: list[str] = field(default_factory=list[str])
    _most: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        scope = {info.name: self._added(info.dtype, len(info.shape)) for info in self.plan.inputs}
        self._top = self._sequence(self.plan.stages, scope)
        self.outputs = [scope[name] for name in self.plan.outputs]

    @property
    def interface(self) -> StagedInterface:
        """Returns the C interface."""
        values = [self._values[number] for number in self.outputs]
        outputs = [
            TensorInfo(name, value.dtype, ("?",) * value.rank)
            for name, value in zip(self.plan.outputs, values, strict=True)
        ]
        return StagedInterface.of(self.plan.inputs, outputs)

    def text(self, name: str) -> str:
        """Returns the text of `stages.h`; `name` is the prefix of the C functions."""
        ranks = [value.rank for value in self._values]
        numbers = {
            **error_codes(),
            "PART_COUNT": len(self.programs),
            "VALUE_COUNT": len(self._values),
            "CONSTANT_COUNT": len(self.constants),
            "STAGES": self._top[0],
            "STAGE_COUNT": self._top[1],
            "MOST_RANK": max(*ranks, 2),
            **{
                f"MOST_{kind}": max(self._most.get(kind, 0), 1)
                for kind in ("INPUTS", "OUTPUTS", "STATES", "ROWS")
            },
            "SIZE_COUNT": max(self._most.get("SIZES", 0), 1),
            **self.interface.parameters,
        }
        parts = [f"extern const part {part_symbol(n)};" for n in range(len(self.programs))]
        contents = [
            f"extern const unsigned char {constant_symbol(n)}[];"
            for n in range(len(self.constants))
        ]
        return "\n".join(
            [
                *defines(numbers),
                f"#define C_NAME(function) {name}_##function",
                *parts,
                *contents,
                c_array("part *const", "parts", [f"&{part_symbol(n)}" for n in range(len(parts))]),
                c_array("int", "ranks", map(str, ranks)),
                c_array("int", "item_bytes", [str(one.dtype.itemsize) for one in self._values]),
                *self._inputs(),
                c_array("int", "output_values", map(str, self.outputs)),
                *self._lines,
                *self._constant_table(),
                "",
            ]
        )

    def _inputs(self) -> Iterator[str]:
        """Yields the names of symbolic sizes, and the shapes of the inputs; in a shape, `-1 - n`
        stands for symbolic size `n`.
        """
        symbols = symbols_of(self.plan.inputs)
        yield c_array("char *const", "size_names", map(quoted, symbols))
        for number, info in enumerate(self.plan.inputs):
            sizes = [
                str(size if isinstance(size, int) else -1 - symbols.index(size))
                for size in info.shape
            ]
            yield c_array("int64_t", f"input_{number}", sizes)
        names = [f"input_{number}" for number in range(len(self.plan.inputs))]
        yield c_array("int64_t *const", "input_sizes", names)

    def _constant_table(self) -> Iterator[str]:
        for number, array in enumerate(self.constants):
            yield c_array("int64_t", f"constant_{number}", map(str, array.shape))
        rows = [
            f"{{{constant_symbol(number)}, {value}, constant_{number}}}"
            for number, value in enumerate(self._constant_values)
        ]
        yield c_array("constant", "constants", rows)

    def _added(self, dtype: np.dtype[np.generic], rank: int) -> int:
        self._values.append(_Value(dtype, rank))
        return len(self._values) - 1

    def _sequence(self, stages: Iterable[PlanStage], scope: _Scope) -> tuple[str, int]:
        """Returns the name of a C array of segments, and its length; adds the segments' results to
        the scope.
        """
        rows = [row for stage in stages for row in self._rows(stage, scope)]
        return self._array("stage", rows), len(rows)

    def _rows(self, stage: PlanStage, scope: _Scope) -> Iterator[str]:
        node = stage.nodes[-1]
        if isinstance(node, plan.Staged):
            inner = {name: scope[name] for name in stage.inputs}
            for one in node.stages:
                yield from self._rows(one, inner)
            scope.update((name, inner[name]) for name in node.outputs)
            yield _row("stages", trims=self._trims(stage, scope))
        elif isinstance(node, Loop):
            yield _row(f"the loop '{node.row.node}'", loop=self._loop(node, scope))
        else:
            assert isinstance(node, Leaf), "others are written to no file"
            yield self._call(stage, node.programs[-1], scope)

    def _call(self, stage: PlanStage, program: Program, scope: _Scope) -> str:
        """Returns the row of a segment with one program."""
        said = {
            size_input(name, element): f"{{{value}, {element}, {self._bytes(value)}}}"
            for name, value in ((name, scope[name]) for name in stage.sizes)
            for element in range(MOST_SIZES)
        }
        inputs = [
            said.get(spec.name) or f"{{{scope[spec.name]}, -1, 0}}" for spec in program.inputs
        ]
        for spec in program.outputs:
            scope[spec.name] = self._added(spec.dtype, len(spec.shape))
        outputs = [str(scope[spec.name]) for spec in program.outputs]
        axes = list(_axes(program))
        self.programs.append(program)
        self._note(INPUTS=len(inputs), OUTPUTS=len(outputs))
        if program.sizes is not None:
            self._note(SIZES=len(program.sizes.symbols))
        number = len(self.programs) - 1
        return _row(
            f"program {number + 1}",
            program=f"&{part_symbol(number)}",
            hidden=int(program.sizes is not None),
            inputs=(self._array("source", inputs), len(inputs)),
            outputs=(self._array("int", outputs), len(outputs)),
            axes=(self._array("axis", axes), len(axes)),
            trims=self._trims(stage, scope),
        )

    def _bytes(self, value: int) -> int:
        return self._values[value].dtype.itemsize

    def _trims(self, stage: PlanStage, scope: _Scope) -> tuple[str, int]:
        rows = [
            f"{{{scope[name]}, {trim.axis}, {scope[trim.count]}}}"
            for name, trim in stage.trims.items()
        ]
        return self._array("trim", rows), len(rows)

    def _loop(self, loop: Loop, scope: _Scope) -> str:
        names = loop.names
        for name, array in loop.constants.items():
            scope[name] = self._added(array.dtype, array.ndim)
            self._constant_values.append(scope[name])
            self.constants.append(array)
        initial = [scope[name] for name in names.initial]
        inner = {name: scope[name] for name in names.captured}
        inner[names.number] = self._added(np.dtype(np.int64), 0)
        inner[names.active] = self._added(np.dtype(np.bool_), 0)
        for name, value in zip(names.states, initial, strict=True):
            inner[name] = self._added(self._values[value].dtype, self._values[value].rank)
        given = dict(inner)
        assert loop.body is not None, "a file has all bodies"
        body, count = self._sequence([PlanStage(tuple(inner), (loop.body,))], inner)
        states = [given[name] for name in names.states]
        updates = [inner[name] for name in names.updates]
        rows = [inner[name] for name in names.rows]
        last = [
            self._result(scope, name, value, 0)
            for name, value in zip(names.results, updates, strict=False)
        ]
        stacked = [
            self._result(scope, name, value, 1)
            for name, value in zip(names.results[len(states) :], rows, strict=True)
        ]
        self._note(STATES=len(states), ROWS=len(rows))
        numbers = [
            *(scope.get(names.trip_count, -1), scope.get(names.condition, -1)),
            *(given[names.number], given[names.active], inner[names.goes_on]),
            *(len(states), len(rows), count),
        ]
        arrays = [
            self._array("int", map(str, one))
            for one in (initial, states, updates, last, rows, stacked)
        ]
        return self._array("loop", [f"{{{', '.join([*map(str, numbers), *arrays, body])}}}"])

    def _result(self, scope: _Scope, name: str, like: int, more: int) -> int:
        """Adds a loop's result to the scope: the last value, or the stacked values.

        Args:
            more: 1 if the values of all iterations are stacked along a new axis, else 0.
        """
        if not name:
            return -1
        value = self._values[like]
        scope[name] = self._added(value.dtype, value.rank + more)
        return scope[name]

    def _note(self, **counts: int) -> None:
        for kind, count in counts.items():
            self._most[kind] = max(self._most.get(kind, 0), count)

    def _array(self, kind: str, rows: Iterable[str]) -> str:
        """Adds a C array with these rows; returns its name."""
        name = f"table_{len(self._lines)}"
        self._lines.append(c_array(kind, name, list(rows)))
        return name


def part_symbol(number: int) -> str:
    """Returns the C name of a program; numbers begin at 0."""
    return f"byoc_part_{number}"


def constant_symbol(number: int) -> str:
    """Returns the C name of a constant; numbers begin at 0."""
    return f"byoc_constant_{number}"


def _axes(program: Program) -> Iterator[str]:
    """Yields a row for each axis of a program's inputs: input, axis, number of the symbolic size or
    -1, static size or -1.
    """
    symbols = [] if program.sizes is None else list(program.sizes.texts.values())
    for number, spec in enumerate(program.inputs):
        for axis, size in enumerate(spec.shape):
            if isinstance(size, int):
                yield f"{{{number}, {axis}, -1, {size}}}"
            else:
                yield f"{{{number}, {axis}, {symbols.index(size)}, -1}}"


def _row(
    name: str,
    *,
    program: str = "NULL",
    loop: str = "NULL",
    hidden: int = 0,
    inputs: tuple[str, int] = ("NULL", 0),
    outputs: tuple[str, int] = ("NULL", 0),
    axes: tuple[str, int] = ("NULL", 0),
    trims: tuple[str, int] = ("NULL", 0),
) -> str:
    """Returns the initialiser of a `struct stage`."""
    tables = (inputs, outputs, axes, trims)
    counts = [str(count) for _, count in tables]
    arrays = [array for array, _ in tables]
    return f"{{{', '.join([quoted(name), program, loop, *counts, str(hidden), *arrays])}}}"
