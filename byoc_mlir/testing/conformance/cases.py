"""A case for each sample of an op, and for each way in which a pattern can look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.constant import Array
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
from byoc_mlir.testing.conformance.graph import OPS, Case, GraphBuilder
from byoc_mlir.testing.conformance.samples import IMAGE, Sample, Shape, samples_of

VARIANTS = 4
"""How many of the ways in which one pattern can look are tried."""


def op_cases(name: str, samples: Sequence[Sample]) -> Iterator[Case]:
    """A model of one op for each sample that is valid."""
    for sample in samples:
        graph = GraphBuilder()
        shapes = (sample.data, *sample.rest(sample.data))
        operands: list[SSAValue] = []
        for index, shape in enumerate(shapes):
            dtype = sample.dtype if index else sample.first_dtype or sample.dtype
            array = graph.array(shape, dtype, sample.values)
            make = graph.constant if sample.constants and index else graph.input
            operands.append(make(array))
        try:
            op = graph.op(name, operands, **sample.attributes)
        except VerifyException:
            continue  # an element type that the op does not have
        yield graph.case(name, sample.label, op.results[:1])


class NotGeneratedError(Exception):
    """No model can be made from a pattern; the message says why."""


@dataclass
class _Choices:
    """Decides at each alternative; `following` is the next way to decide, in lexical order."""

    given: tuple[int, ...]
    made: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def choose(self, count: int) -> int:
        position = len(self.made)
        choice = self.given[position] if position < len(self.given) else 0
        self.made.append((choice, count))
        return choice

    def following(self) -> tuple[int, ...] | None:
        made = list(self.made)
        while made:
            choice, count = made.pop()
            if choice + 1 < count:
                return (*(earlier for earlier, _ in made), choice + 1)
        return None


def pattern_cases(row: CompositePattern) -> Iterator[Case]:
    """Models that the pattern should match, for the first of the ways in which it can look.

    For the first way there are two more, which its check may refuse: in float64, and with all
    values inside of the pattern used outside as well.

    Raises:
        NotGeneratedError: there is no such model, or none is known.
    """
    made, problem = 0, "it has no form"
    given: tuple[int, ...] | None = ()
    while given is not None and made < VARIANTS:
        choices = _Choices(given)
        try:
            yield _PatternGraph(choices).case(row)
            if made == 0:
                yield _PatternGraph(_Choices(given), "float64").case(row)
                yield _PatternGraph(_Choices(given)).case(row, escaping=True)
            made += 1
        except (NotGeneratedError, VerifyException) as error:
            problem = str(error)
        given = choices.following()
    if not made:
        raise NotGeneratedError(problem)


class _PatternGraph:
    """Builds what a pattern describes."""

    def __init__(self, choices: _Choices, dtype: str = "float32"):
        self._graph = GraphBuilder()
        self._choices, self._dtype = choices, dtype
        self._made: dict[Pattern, Operation | SSAValue] = {}
        self._ops: list[Operation] = []

    def case(self, row: CompositePattern, *, escaping: bool = False) -> Case:
        """The model of a pattern; `escaping`: all values inside are results of it too."""
        root = _value(self._build(row.pattern, None))
        kinds = "".join(f"{op.name.removeprefix('relay.')} " for op in self._ops)
        inner = [op.results[0] for op in self._ops if op.results[0] is not root]
        label = f"{kinds}{self._dtype}{', inner values used outside' if escaping else ''}"
        return self._graph.case(row.name, label, [root, *(inner if escaping else ())])

    def _build(self, pattern: Pattern, shape: Shape | None) -> Operation | SSAValue:
        """What a pattern matches; `shape` is that of a new value, where something asks for one."""
        if pattern not in self._made:
            self._made[pattern] = self._new(pattern, shape)
        return self._made[pattern]

    def _new(self, pattern: Pattern, shape: Shape | None) -> Operation | SSAValue:
        if isinstance(pattern, NamedPattern | ConstrainedPattern):
            return self._build(pattern.inner, shape)
        if isinstance(pattern, AltPattern):
            chosen = (pattern.first, pattern.second)[self._choices.choose(2)]
            return self._build(chosen, shape)
        if isinstance(pattern, ItemPattern):
            op = self._build(pattern.inner, shape)
            assert isinstance(op, Operation)
            return op.results[pattern.index or 0]
        if isinstance(pattern, CallPattern):
            return self._call(pattern)
        return self._leaf(pattern, IMAGE if shape is None else shape)

    def _leaf(self, pattern: Pattern, shape: Shape) -> SSAValue:
        if isinstance(pattern, WildcardPattern | VarPattern):
            return self._graph.input(self._array(shape))
        if isinstance(pattern, ConstantPattern):
            return self._graph.constant(self._array(shape))
        if isinstance(pattern, ExprPattern) and not isinstance(pattern.expression, SSAValue):
            return self._graph.constant(np.asarray(pattern.expression, self._dtype))
        raise NotGeneratedError(f"no model can be made from '{pattern}'")

    def _array(self, shape: Shape) -> Array:
        return self._graph.array(shape, self._dtype, (0.3, 1.5))

    def _call(self, pattern: CallPattern) -> Operation:
        names = pattern.names or ("nn.relu",)
        name = names[self._choices.choose(len(names))]
        samples = samples_of(name)
        if not samples or name not in OPS:
            raise NotGeneratedError(f"there is no sample of {name}")
        sample = samples[self._choices.choose(min(len(samples), 2))]
        op = self._graph.op(name, self._operands(pattern, sample), **sample.attributes)
        self._ops.append(op)
        return op

    def _operands(self, pattern: CallPattern, sample: Sample) -> Sequence[SSAValue]:
        """Operands in order; those that are ops themselves say what shape the others have."""
        count = 1 + len(sample.rest(sample.data))
        if pattern.args is None:
            args: list[Pattern] = [WildcardPattern() for _ in range(count)]
        else:
            free = (WildcardPattern() for _ in range(count - len(pattern.args)))
            args = [*pattern.args, *(free if pattern.names is None else ())]
        values: dict[int, SSAValue] = {}
        for index in sorted(range(len(args)), key=lambda index: _is_leaf(args[index])):
            known = next(iter(values.values()), None)
            data = shape_of(known) if known is not None else sample.data
            shapes = (data, *sample.rest(data))
            wanted = shapes[min(index, len(shapes) - 1)]
            if index == 0 and known is None:
                wanted = None if not _is_leaf(args[0]) else sample.data
            values[index] = _value(self._build(args[index], wanted))
        return [values[index] for index in range(len(args))]


def _value(made: Operation | SSAValue) -> SSAValue:
    return made.results[0] if isinstance(made, Operation) else made


def _is_leaf(pattern: Pattern) -> bool:
    while isinstance(pattern, NamedPattern | ConstrainedPattern):
        pattern = pattern.inner
    return isinstance(pattern, WildcardPattern | VarPattern | ConstantPattern | ExprPattern)
