"""Bindings of a finished search, and the test that they are a valid match."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation, SSAValue

from byoc_mlir.patterns.composite import Match
from byoc_mlir.patterns.language import (
    CallPattern,
    ConstantPattern,
    DominatorPattern,
    ExprPattern,
    LeafPattern,
    Pattern,
)
from byoc_mlir.patterns.scope import outside_use
from byoc_mlir.patterns.subjects import Subject, as_constant, describe


class Found:
    """Bindings of a search: the subject of each sub-pattern, and the ops on the paths of
    dominators.
    """

    def __init__(
        self,
        bound: Mapping[Pattern, Subject],
        between: Mapping[DominatorPattern, tuple[Operation, ...]],
    ):
        self._bound = bound
        self._between = between
        self.ops = dict.fromkeys(
            op_of(found) for part, found in bound.items() if isinstance(part, CallPattern)
        )
        self.ops.update(dict.fromkeys(op for path in between.values() for op in path))

    def refuse(self, root: Operation, subject: Subject) -> str | None:
        """Returns why the bindings are no match, or `None`: a leaf is an op of the match, or an
        inner value is used outside.
        """
        return self._leaf_inside() or _leaving(self.ops, root, subject)

    def match(
        self, root: Operation, subject: Subject, captures: Mapping[str | Pattern, Subject]
    ) -> Match:
        """Returns the match whose last op is `root`."""
        constants = self._embedded()
        return Match(
            root,
            tuple(root.results) if subject is root else (_value(subject),),
            _in_order(root, self.ops),
            self._inputs(constants),
            tuple(constants),
            captures,
        )

    def _leaf_inside(self) -> str | None:
        exempt = {part for dominator in self._between for part in parts_of(dominator.child)}
        for part, found in self._bound.items():
            if isinstance(part, LeafPattern) and part not in exempt and _owner(found) in self.ops:
                return f"{describe(found)} is part of the match, and an input of it as well"
        return None

    def _embedded(self) -> dict[SSAValue, None]:
        return {
            found: None
            for part, found in self._bound.items()
            if isinstance(part, ConstantPattern | ExprPattern)
            and isinstance(found, SSAValue)
            and as_constant(found)
        }

    def _inputs(self, constants: dict[SSAValue, None]) -> tuple[SSAValue, ...]:
        inputs = dict[SSAValue, None]()
        for part, found in self._bound.items():
            if isinstance(part, CallPattern):
                inputs.update(dict.fromkeys(op_of(found).operands))
            elif isinstance(part, LeafPattern) and isinstance(found, SSAValue):
                inputs[found] = None
        for path in self._between.values():
            inputs.update(dict.fromkeys(value for op in path for value in op.operands))
        return tuple(
            value for value in inputs if value.owner not in self.ops and value not in constants
        )


def op_of(subject: Subject) -> Operation:
    """Returns the op of a subject that is not an argument."""
    op = _owner(subject)
    assert isinstance(op, Operation)
    return op


def _value(subject: Subject) -> SSAValue:
    assert isinstance(subject, SSAValue)
    return subject


def _owner(subject: Subject) -> object:
    return subject if isinstance(subject, Operation) else subject.owner


def parts_of(pattern: Pattern) -> dict[Pattern, None]:
    """Returns a pattern and all its sub-patterns."""
    found, pending = dict.fromkeys((pattern,)), [pattern]
    while pending:
        new = [child for child in pending.pop().children if child not in found]
        found.update(dict.fromkeys(new))
        pending += new
    return found


def _leaving(ops: dict[Operation, None], root: Operation, subject: Subject) -> str | None:
    for op in ops:
        for value in op.results:
            if op is root and (subject is op or subject is value):
                continue
            user = outside_use(value, ops)
            if user is not None:
                return f"{describe(value)} is also used outside of the match, by {describe(user)}"
    return None


def _in_order(root: Operation, ops: dict[Operation, None]) -> tuple[Operation, ...]:
    """Returns ops in depth-first order from the root, operands before users."""
    order = dict[Operation, None]()
    stack: list[tuple[Operation, bool]] = [(root, False)]
    while stack:
        op, ready = stack.pop()
        if op in order:
            continue
        if ready:
            order[op] = None
            continue
        stack.append((op, True))
        stack.extend(
            (value.owner, False)
            for value in reversed(op.operands)
            if isinstance(value.owner, Operation) and value.owner in ops
        )
    return tuple(order)
