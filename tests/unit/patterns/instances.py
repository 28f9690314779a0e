"""Graphs that a pattern describes: each alternative is taken in at least one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from byoc_mlir.dialects import core_dialects
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.dialects.relay.elementwise import NegativeOp
from byoc_mlir.patterns.language import (
    AltPattern,
    CallPattern,
    ConstantPattern,
    ExprPattern,
    ItemPattern,
    NamedPattern,
    Pattern,
    VarPattern,
    WildcardPattern,
)
from byoc_mlir.tensors import Array

VALUE = TensorType(f32, [2])
OPS = {op.name.removeprefix("relay."): op for op in core_dialects()["relay"]().operations}


@dataclass(frozen=True)
class Instance:
    """Block with the ops that a match has to contain; the last one is its root.

    Only names of ops and the edges between them have a meaning: types and properties do not fit.
    """

    block: Block
    ops: tuple[Operation, ...]

    @property
    def inner_values(self) -> list[SSAValue]:
        """Returns the values that the ops pass to each other."""
        return [value for op in self.ops[:-1] for value in op.results if value.uses.get_length()]

    @contextmanager
    def returned_too(self, value: SSAValue) -> Iterator[None]:
        """Returns `value` from the function, besides the root's results, within the context."""
        last = self.block.last_op
        assert isinstance(last, ReturnOp)
        last.operands = [*self.ops[-1].results, value]
        yield
        last.operands = self.ops[-1].results

    @contextmanager
    def read_too(self, value: SSAValue) -> Iterator[None]:
        """Adds an op outside of the match that reads `value`, within the context."""
        last = self.block.last_op
        assert last is not None
        reader = NegativeOp.create(operands=[value], result_types=[VALUE])
        self.block.insert_op_before(reader, last)
        yield
        reader.detach()
        reader.erase()


Choices = Mapping[AltPattern, bool]
"""Alternatives of a pattern; `True` selects the second one."""


def all_choices(pattern: Pattern) -> Iterator[Choices]:
    """Yields the first alternative everywhere, then each reachable second one, once."""
    pending: list[Choices] = [{}]
    seen = set[AltPattern]()
    while pending:
        choices = pending.pop()
        yield choices
        for alternative in _met(pattern, choices):
            if alternative not in seen:
                seen.add(alternative)
                pending.append({**choices, alternative: True})


def _met(pattern: Pattern, choices: Choices) -> Iterator[AltPattern]:
    if isinstance(pattern, AltPattern):
        yield pattern
        yield from _met(pattern.second if choices.get(pattern) else pattern.first, choices)
    else:
        for child in pattern.children:
            yield from _met(child, choices)


def instance(pattern: Pattern, choices: Choices) -> Instance:
    """Returns a graph that the pattern matches with these choices."""
    builder = _Builder(choices)
    builder.value(pattern)
    builder.block.add_op(ReturnOp(*builder.ops[-1].results))
    return Instance(builder.block, tuple(builder.ops))


class _Builder:
    def __init__(self, choices: Choices):
        self.choices = choices
        self.block = Block()
        self.ops: list[Operation] = []
        self._known: dict[Pattern | str, SSAValue] = {}

    def value(self, pattern: Pattern) -> SSAValue:
        if pattern not in self._known:
            self._known[pattern] = self._made(pattern)
        return self._known[pattern]

    def _made(self, pattern: Pattern) -> SSAValue:
        match pattern:
            case NamedPattern():
                if pattern.name not in self._known:
                    self._known[pattern.name] = self.value(pattern.inner)
                return self._known[pattern.name]
            case AltPattern():
                return self.value(pattern.second if self.choices.get(pattern) else pattern.first)
            case ItemPattern():
                assert isinstance(pattern.inner, CallPattern)
                return self._op(pattern.inner, (pattern.index or 0) + 2)[pattern.index or 0]
            case CallPattern():
                return self._op(pattern, 1)[0]
            case ConstantPattern():
                return self._constant(np.asarray([1, 2], np.float32))
            case ExprPattern():
                assert not isinstance(pattern.expression, SSAValue)
                return self._constant(np.full(2, pattern.expression, np.float32))
            case WildcardPattern() | VarPattern():
                return self.block.insert_arg(VALUE, len(self.block.args))
            case _:
                raise NotImplementedError(f"instances of {type(pattern).__name__}")

    def _constant(self, array: Array) -> SSAValue:
        constant = ConstantOp.of("c", array)
        self.block.add_op(constant)
        return constant.output

    def _op(self, pattern: CallPattern, results: int) -> list[SSAValue]:
        if pattern.args is None:
            operands = [self.block.insert_arg(VALUE, len(self.block.args))]
        else:
            operands = [self.value(argument) for argument in pattern.args]
        kind = OPS[pattern.names[0]] if pattern.names else NegativeOp
        op = kind.create(operands=operands, result_types=[VALUE] * results)
        self.block.add_op(op)
        self.ops.append(op)
        return list(op.results)
