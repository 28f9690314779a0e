"""Matching with full backtracking: every way a pattern fits, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import Commutative

from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.patterns.composite import Match
from byoc_mlir.patterns.language import (
    AltPattern,
    CallPattern,
    ConstantPattern,
    ConstrainedPattern,
    DominatorPattern,
    ExprPattern,
    ItemPattern,
    LeafPattern,
    NamedPattern,
    Pattern,
    VarPattern,
    WildcardPattern,
)
from byoc_mlir.patterns.scope import Scope, outside_use
from byoc_mlir.patterns.subjects import Subject, as_constant, describe

COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum"})
"""Binary ops whose operands are matched in either order."""


def match_pattern(pattern: Pattern, op: Operation, scope: Scope | None = None) -> Match | None:
    """The first match of `pattern` whose root is `op`, or `None`."""
    return next(all_matches(pattern, op, scope), None)


def all_matches(
    pattern: Pattern,
    op: Operation,
    scope: Scope | None = None,
    on_refusal: Callable[[int, str], None] | None = None,
) -> Iterator[Match]:
    """Every match with root `op`, in order of preference, each set of ops and captures once.

    Args:
        pattern: the pattern.
        op: the op whose result (or all whose results) the pattern describes.
        scope: which ops may take part; all of the op's block by default.
        on_refusal: told how many sub-patterns fitted, and why the next one did not.
    """
    matcher = Matcher(scope or Scope(op.parent), on_refusal)
    seen = set[tuple[object, ...]]()
    for subject in _root_subjects(op):
        for _ in matcher.match(pattern, subject):
            match = matcher.complete(op, subject)
            if match is None:
                continue
            key = (match.ops, match.inputs, *sorted(_named(match)))
            if key not in seen:
                seen.add(key)
                yield match


def _named(match: Match) -> Iterator[tuple[str, int]]:
    return ((key, id(value)) for key, value in match.captures.items() if isinstance(key, str))


def _root_subjects(op: Operation) -> Sequence[Subject]:
    if len(op.results) == 1:
        return op.results
    return (op, *op.results)


class Matcher:
    """The state of one search: what each pattern object stands for so far.

    Generators yield once for every way to extend the state, and take back on resumption what
    they added.
    """

    def __init__(self, scope: Scope, on_refusal: Callable[[int, str], None] | None = None):
        self.scope = scope
        self.bound: dict[Pattern, Subject] = {}
        self.names: dict[str, Subject] = {}
        self.between: dict[DominatorPattern, tuple[Operation, ...]] = {}
        self._on_refusal = on_refusal

    def _refuse(self, reason: str, *parts: object, progress: int = 0) -> None:
        """Notes why something did not fit; `{}` stand for parts, values and ops by description."""
        if self._on_refusal is not None:
            words = [
                describe(part) if isinstance(part, SSAValue | Operation) else part for part in parts
            ]
            self._on_refusal(len(self.bound) + progress, reason.format(*words))

    def match(self, pattern: Pattern, subject: Subject) -> Iterator[None]:
        """All ways in which `pattern` matches `subject`, given the state."""
        if pattern in self.bound:
            if self.bound[pattern] is subject:
                yield
            else:
                self._refuse("expected {} again, found {}", self.bound[pattern], subject)
            return
        for _ in self._ways(pattern, subject):
            self.bound[pattern] = subject
            yield
            del self.bound[pattern]

    def _ways(self, pattern: Pattern, subject: Subject) -> Iterator[None]:
        ways = _WAYS.get(type(pattern))
        if ways is None:
            raise TypeError(f"{type(pattern).__name__} can only be the operands of a call")
        return ways(self, pattern, subject)

    def leaf(self, pattern: LeafPattern, subject: Subject) -> Iterator[None]:
        value = subject.results[0] if isinstance(subject, Operation) else subject
        reason = pattern.refuse(value)
        if reason is None:
            yield
        else:
            self._refuse("{}", reason)

    def alternatives(self, pattern: AltPattern, subject: Subject) -> Iterator[None]:
        yield from self.match(pattern.first, subject)
        yield from self.match(pattern.second, subject)

    def name(self, pattern: NamedPattern, subject: Subject) -> Iterator[None]:
        name = pattern.name
        for _ in self.match(pattern.inner, subject):
            before = self.names.get(name)
            if before not in (None, subject):
                self._refuse("'{}' is {} already, not {}", name, before, subject)
                continue
            self.names[name] = subject
            yield
            if before is None:
                del self.names[name]

    def constrained(self, pattern: ConstrainedPattern, subject: Subject) -> Iterator[None]:
        for _ in self.match(pattern.inner, subject):
            reason = pattern.refuse(subject)
            if reason is None:
                yield
            else:
                self._refuse("{}", reason)

    def item(self, pattern: ItemPattern, subject: Subject) -> Iterator[None]:
        if not isinstance(subject, OpResult):
            self._refuse("expected {}, found {}", pattern, subject)
        elif pattern.index not in (None, subject.index):
            self._refuse("expected result #{}, found {}", pattern.index, subject)
        else:
            whole = subject.op if len(subject.op.results) > 1 else subject
            yield from self.match(pattern.inner, whole)

    def call(self, pattern: CallPattern, subject: Subject) -> Iterator[None]:
        op = self._called_op(pattern, subject)
        if op is None:
            return
        for operands in _arrangements(pattern, op):
            yield from self._operands(op, pattern.args or (), operands, 0)

    def _called_op(self, pattern: CallPattern, subject: Subject) -> Operation | None:
        op = subject if isinstance(subject, Operation) else subject.owner
        if not isinstance(op, Operation) or not pattern.accepts(op):
            self._refuse("expected {}, found {}", pattern, subject)
            return None
        if isinstance(subject, OpResult) and len(op.results) > 1:
            self._refuse(
                "found {}, one of {} results; say which with is_tuple_get_item",
                subject,
                len(op.results),
            )
            return None
        if (reason := self.scope.refuse(op)) is not None:
            self._refuse("{} {}", op, reason)
            return None
        if pattern.args is not None and not _arity_fits(pattern, op):
            self._refuse(
                "expected {} with {} operands, found {}", op, len(pattern.args), len(op.operands)
            )
            return None
        return op

    def _operands(
        self, op: Operation, args: Sequence[Pattern], operands: Sequence[SSAValue], position: int
    ) -> Iterator[None]:
        if position == len(args):
            yield
            return
        for _ in self.match(args[position], operands[position]):
            yield from self._operands(op, args, operands, position + 1)

    def dominator(self, pattern: DominatorPattern, subject: Subject) -> Iterator[None]:
        before = set(self.bound)
        for _ in self.match(pattern.child, subject):
            ops = dict.fromkeys(
                _op(found)
                for part, found in self.bound.items()
                if part not in before and isinstance(part, CallPattern)
            )
            pending = [value for op in ops for value in op.operands if value.owner not in ops]
            yield from self._climb(pattern, pending, ())

    def _climb(
        self, pattern: DominatorPattern, pending: list[SSAValue], between: tuple[Operation, ...]
    ) -> Iterator[None]:
        pending, found = list(pending), dict.fromkeys(between)
        while pending:
            value = pending.pop()
            op = value.owner
            if isinstance(value, BlockArgument) or as_constant(value) or op in found:
                continue
            assert isinstance(op, Operation)
            if pattern.parent in self.bound:
                if _op(self.bound[pattern.parent]) is op:
                    continue
            else:
                for _ in self.match(pattern.parent, value):
                    yield from self._climb(pattern, pending, tuple(found))
            if not self._on_path(pattern, value):
                # Says more than that the value is no parent, which was noted just before.
                self._refuse("{} lies between {}", value, pattern, progress=1)
                return
            found[op] = None
            pending.extend(op.operands)
        if pattern.parent in self.bound:
            self.between[pattern] = tuple(found)
            yield
            del self.between[pattern]

    def _on_path(self, pattern: DominatorPattern, value: SSAValue) -> bool:
        op = value.owner
        if not isinstance(op, Operation) or self.scope.refuse(op) is not None:
            return False
        return any(True for _ in Matcher(self.scope).match(pattern.path, value))

    def complete(self, root: Operation, subject: Subject) -> Match | None:
        """The match that the state describes, unless a value leaves it or a leaf is inside."""
        ops = dict.fromkeys(
            _op(found) for part, found in self.bound.items() if isinstance(part, CallPattern)
        )
        between = dict.fromkeys(op for path in self.between.values() for op in path)
        ops.update(between)
        if root not in ops:
            return None
        reason = self._leaf_inside(ops) or _leaving(ops, root, subject)
        if reason is not None:
            self._refuse("{}", reason)
            return None
        constants = self._embedded()
        return Match(
            root,
            tuple(root.results) if subject is root else (_value(subject),),
            _in_order(root, ops),
            self._inputs(ops, constants),
            tuple(constants),
            {**self.names, **self.bound},
        )

    def _leaf_inside(self, ops: dict[Operation, None]) -> str | None:
        exempt = {_part for dominator in self.between for _part in _parts(dominator.child)}
        for part, found in self.bound.items():
            if isinstance(part, LeafPattern) and part not in exempt and _owner(found) in ops:
                return f"{describe(found)} is part of the match, and an input of it as well"
        return None

    def _embedded(self) -> dict[SSAValue, None]:
        return {
            found: None
            for part, found in self.bound.items()
            if isinstance(part, ConstantPattern | ExprPattern)
            and isinstance(found, SSAValue)
            and as_constant(found)
        }

    def _inputs(
        self, ops: dict[Operation, None], constants: dict[SSAValue, None]
    ) -> tuple[SSAValue, ...]:
        inputs = dict[SSAValue, None]()
        for part, found in self.bound.items():
            if isinstance(part, CallPattern):
                inputs.update(dict.fromkeys(_op(found).operands))
            elif isinstance(part, LeafPattern) and isinstance(found, SSAValue):
                inputs[found] = None
        for path in self.between.values():
            inputs.update(dict.fromkeys(value for op in path for value in op.operands))
        return tuple(value for value in inputs if value.owner not in ops and value not in constants)


def _arity_fits(pattern: CallPattern, op: Operation) -> bool:
    assert pattern.args is not None
    if pattern.names is None:
        return len(pattern.args) <= len(op.operands)
    return len(pattern.args) == len(op.operands)


def _arrangements(pattern: CallPattern, op: Operation) -> Iterator[Sequence[SSAValue]]:
    yield op.operands
    if pattern.args and len(op.operands) == 2 and _commutes(op):
        yield tuple(reversed(op.operands))


def _commutes(op: Operation) -> bool:
    return relay_name(op) in COMMUTATIVE and op.has_trait(Commutative)


def _op(subject: Subject) -> Operation:
    op = _owner(subject)
    assert isinstance(op, Operation)
    return op


def _value(subject: Subject) -> SSAValue:
    assert isinstance(subject, SSAValue)
    return subject


def _owner(subject: Subject) -> object:
    return subject if isinstance(subject, Operation) else subject.owner


def _parts(pattern: Pattern) -> Iterator[Pattern]:
    yield pattern
    for child in pattern.children:
        yield from _parts(child)


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
    """Operands before users, each op after its first operand's ops; depth first from the root."""
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


_WAYS: dict[type[Pattern], Callable[[Matcher, Any, Subject], Iterator[None]]] = {
    AltPattern: Matcher.alternatives,
    CallPattern: Matcher.call,
    ConstantPattern: Matcher.leaf,
    ConstrainedPattern: Matcher.constrained,
    DominatorPattern: Matcher.dominator,
    ExprPattern: Matcher.leaf,
    ItemPattern: Matcher.item,
    NamedPattern: Matcher.name,
    VarPattern: Matcher.leaf,
    WildcardPattern: Matcher.leaf,
}
"""How each kind of pattern matches; a chain of `isinstance` would take most of the time."""
