"""Cases for the alternative forms of a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Commutative
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import RelayOp
from byoc_mlir.dialects.relay.base import relay_name, shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.patterns import CompositePattern, Pattern
from byoc_mlir.patterns.language import (
    AltPattern,
    CallPattern,
    ConstantPattern,
    ConstrainedPattern,
    ExprPattern,
    ItemPattern,
    NamedPattern,
    VarPattern,
    WildcardPattern,
)
from byoc_mlir.testing.conformance.graph import OPS, Case, CaseBuilder
from byoc_mlir.testing.samples.relay_ops.sample import Range, Sample, Shape
from byoc_mlir.testing.samples.relay_ops.table import IMAGE, samples_of

STRUCTURES = 16
"""Maximum number of combinations of alternatives that are tried for one pattern."""


class NotGeneratedError(Exception):
    """Error of a pattern from which no model can be generated; the message has the reason."""


@dataclass
class _Choices:
    """Choices that are made while a model is generated.

    The structure is which alternative each part of the pattern is, and which of its names each op
    has. Details are the sample that an op is like, and which of its operands are constants.
    """

    structure: tuple[int, ...] = ()
    detail: tuple[int, int] = (-1, 0)
    """Index of one detail, and its choice; all other details are 0."""
    structures: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    details: list[int] = field(default_factory=list[int])

    def alternative(self, count: int) -> int:
        """Returns the index of the alternative to take for a part of the pattern."""
        position = len(self.structures)
        choice = self.structure[position] if position < len(self.structure) else 0
        self.structures.append((choice, count))
        return choice

    def choose(self, count: int) -> int:
        """Returns the index of the form to take for a detail."""
        self.details.append(count)
        number, choice = self.detail
        return choice if len(self.details) - 1 == number else 0

    def following(self) -> tuple[int, ...] | None:
        """Returns the next structure in lexical order, or `None` after the last."""
        made = list(self.structures)
        while made:
            choice, count = made.pop()
            if choice + 1 < count:
                return (*(earlier for earlier, _ in made), choice + 1)
        return None


def pattern_cases(row: CompositePattern, *, finite: bool = False) -> Iterator[Case]:
    """Yields models that the pattern should match, for all combinations of its alternatives.

    The first combination has further models: one for each other detail, and some that the check may
    refuse, in other element types and with all inner values used outside as well.

    Args:
        finite: without NaN and infinities.

    Raises:
        NotGeneratedError: there is no such model, or none is known.
    """
    made, problem = 0, "it has no form"
    structure: tuple[int, ...] | None = ()
    while structure is not None and made < STRUCTURES:
        choices = _Choices(structure)
        try:
            yield _PatternGraph(choices, finite=finite).case(row)
        except (NotGeneratedError, VerifyException) as error:
            problem = str(error)
        else:
            made += 1
            if made == 1:
                yield from _others(row, structure, choices.details, finite)
        structure = choices.following()
    if not made:
        raise NotGeneratedError(problem)


def _others(
    row: CompositePattern, structure: tuple[int, ...], details: Sequence[int], finite: bool
) -> Iterator[Case]:
    for dtype in ("float64", "float16"):
        yield _PatternGraph(_Choices(structure), dtype).case(row)
    yield _PatternGraph(_Choices(structure), seed=1).case(row, "other constants of these shapes")
    yield _PatternGraph(_Choices(structure)).case(row, "inner values used outside", escaping=True)
    for number, count in enumerate(details):
        for choice in range(1, count):
            graph = _PatternGraph(_Choices(structure, (number, choice)), finite=finite)
            try:
                yield graph.case(row, graph.changed)
            except (NotGeneratedError, VerifyException):
                continue  # this form of an op does not fit to the others


@dataclass(frozen=True)
class _Wanted:
    """Required shape, type and values of a leaf."""

    shape: Shape
    dtype: str = ""
    values: Range | None = None
    special: bool = False


class _PatternGraph:
    """Builder of a graph that a pattern describes."""

    def __init__(
        self, choices: _Choices, dtype: str = "float32", *, seed: int = 0, finite: bool = False
    ):
        self._graph = CaseBuilder(seed)
        self._choices, self._dtype, self._finite = choices, dtype, finite
        self._made: dict[Pattern, Operation | SSAValue] = {}
        self._ops: list[Operation] = []
        self.changed = ""
        """Description of the chosen detail."""

    def case(self, row: CompositePattern, note: str = "", *, escaping: bool = False) -> Case:
        """Returns the model of a pattern; with `escaping`, all inner values are results, too."""
        root = _value(self._build(row.pattern, None))
        kinds = "".join(f"{relay_name(op)} " for op in self._ops)
        inner = [op.results[0] for op in self._ops if op.results[0] is not root]
        note = self.changed or note
        label = f"{kinds}{self._dtype}{f', {note}' if note else ''}"
        return self._graph.case(row.name, label, [root, *(inner if escaping else ())])

    def _build(self, pattern: Pattern, wanted: _Wanted | None) -> Operation | SSAValue:
        """Builds ops that a pattern matches; `wanted` describes a new value, if the user of the
        value requires one.
        """
        if pattern not in self._made:
            self._made[pattern] = self._new(pattern, wanted)
        return self._made[pattern]

    def _new(self, pattern: Pattern, wanted: _Wanted | None) -> Operation | SSAValue:
        if isinstance(pattern, NamedPattern | ConstrainedPattern):
            return self._build(pattern.inner, wanted)
        if isinstance(pattern, AltPattern):
            chosen = (pattern.first, pattern.second)[self._choices.alternative(2)]
            return self._build(chosen, wanted)
        if isinstance(pattern, ItemPattern):
            op = self._build(pattern.inner, wanted)
            assert isinstance(op, Operation)
            return op.results[pattern.index or 0]
        if isinstance(pattern, CallPattern):
            return self._call(pattern)
        return self._leaf(pattern, wanted or _Wanted(IMAGE))

    def _leaf(self, pattern: Pattern, wanted: _Wanted) -> SSAValue:
        array = self._graph.array(
            wanted.shape, wanted.dtype or self._dtype, wanted.values, special=wanted.special
        )
        if isinstance(pattern, WildcardPattern):
            if self._choices.choose(2):
                self.changed = f"a constant {list(wanted.shape)} for a wildcard"
                return self._graph.constant(array)
            return self._graph.input(array)
        if isinstance(pattern, VarPattern):
            return self._graph.input(array)
        if isinstance(pattern, ConstantPattern):
            return self._graph.constant(array)
        if isinstance(pattern, ExprPattern) and not isinstance(pattern.expression, SSAValue):
            return self._graph.constant(np.asarray(pattern.expression, self._dtype))
        raise NotGeneratedError(f"no model can be made from '{pattern}'")

    def _call(self, pattern: CallPattern) -> Operation:
        names = pattern.names or ("nn.relu",)
        name = names[self._choices.alternative(len(names))]
        known = samples_of(name)
        samples = [
            sample
            for sample in known
            if sample.dtype == known[0].dtype and not (self._finite and sample.special)
        ]
        if not samples or name not in OPS:
            raise NotGeneratedError(f"there is no sample of {name}")
        number = self._choices.choose(len(samples))
        sample = samples[number]
        if number:
            self.changed = f"{name} as in {sample.label}"
        operands = self._operands(pattern, sample)
        if _is_commutative(name) and len(operands) == 2 and self._choices.choose(2):
            self.changed = f"operands of {name} exchanged"
            operands.reverse()
        op = self._graph.op(name, operands, **sample.attributes)
        self._ops.append(op)
        return op

    def _operands(self, pattern: CallPattern, sample: Sample) -> list[SSAValue]:
        """Returns the operands in order; ops come first, since their shapes determine the other
        operands' shapes.
        """
        count = 1 + len(sample.rest(sample.data))
        if pattern.args is None:
            args: list[Pattern] = [WildcardPattern() for _ in range(count)]
        else:
            free = (WildcardPattern() for _ in range(count - len(pattern.args)))
            args = [*pattern.args, *(free if pattern.names is None else ())]
        values: dict[int, SSAValue] = {}
        for index in sorted(range(len(args)), key=lambda index: _is_leaf(args[index])):
            known = next(iter(values.items()), None)
            values[index] = _value(self._build(args[index], _wanted(sample, known, index)))
        return [values[index] for index in range(len(args))]


def _wanted(sample: Sample, known: tuple[int, SSAValue] | None, index: int) -> _Wanted:
    """Returns the form of an operand as in a sample, fitted to a known operand, given as its
    position and value.
    """
    data = sample.data if known is None else shape_of(known[1])
    shapes = (data, *sample.rest(data))
    dtype = sample.dtypes.get(index, "" if sample.dtype == "float32" else sample.dtype)
    if index not in sample.dtypes and known is not None and known[0] not in sample.dtypes:
        dtype = numpy_dtype(tensor_type(known[1]).element_type).name
    shape = shapes[min(index, len(shapes) - 1)]
    return _Wanted(
        shape, dtype, sample.range_of(index), sample.special and not sample.is_constant(index)
    )


def _value(made: Operation | SSAValue) -> SSAValue:
    return made.results[0] if isinstance(made, Operation) else made


def _is_commutative(name: str) -> bool:
    kind: type[RelayOp] = OPS[name]
    return kind.has_trait(Commutative)


def _is_leaf(pattern: Pattern) -> bool:
    while isinstance(pattern, NamedPattern | ConstrainedPattern):
        pattern = pattern.inner
    return isinstance(pattern, WildcardPattern | VarPattern | ConstantPattern | ExprPattern)
