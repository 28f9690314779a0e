"""Matching with full backtracking: every way a pattern fits, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import Commutative

from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns.composite import Match
from byoc_mlir.patterns.found import Found, op_of, parts_of
from byoc_mlir.patterns.language import (
    COMMUTATIVE,
    AltPattern,
    CallPattern,
    ConstrainedPattern,
    DominatorPattern,
    ItemPattern,
    LeafPattern,
    NamedPattern,
    Pattern,
    WildcardPattern,
)
from byoc_mlir.patterns.scope import Scope
from byoc_mlir.patterns.subjects import Subject, as_constant, describe

MOST_STEPS = 200_000
"""The parts that are tried at one root before a pattern is refused."""


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

    Raises:
        BackendError: the pattern can match in too many ways to try.
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


Goals: TypeAlias = "tuple[Step, Any, Any, Goals] | None"
"""What is left to do, the next step first, with its two arguments."""

Step: TypeAlias = "Callable[[Matcher, Any, Any, Goals], Iterator[Goals]]"
"""Yields what is left to do, once for each way in which the step succeeds."""

Part: TypeAlias = tuple[Pattern, Subject]


class Matcher:
    """The state of one search: what each pattern object stands for so far.

    Steps are generators that yield once for every way to extend the state, and take back on
    resumption what they added. They stand on a stack of their own, so that patterns may be deep.
    """

    def __init__(self, scope: Scope, on_refusal: Callable[[int, str], None] | None = None):
        self.scope = scope
        self.bound: dict[Pattern, Subject] = {}
        self.names: dict[str, Subject] = {}
        self.between: dict[DominatorPattern, tuple[Operation, ...]] = {}
        self._on_refusal = on_refusal
        self._fits: dict[Part, bool] = {}

    def _refuse(self, reason: str, *parts: object, progress: int = 0) -> None:
        """Notes why something did not fit; `{}` stand for parts, values and ops by description."""
        if self._on_refusal is not None:
            words = [
                describe(part) if isinstance(part, SSAValue | Operation) else part for part in parts
            ]
            self._on_refusal(len(self.bound) + progress, reason.format(*words))

    def match(self, pattern: Pattern, subject: Subject) -> Iterator[None]:
        """All ways in which `pattern` matches `subject`.

        Raises:
            BackendError: there are too many to try.
        """
        stack, steps = [self._match(pattern, subject, None)], 0
        while stack:
            try:
                goals = next(stack[-1])
            except StopIteration:
                stack.pop()
                continue
            if goals is None:
                yield
                continue
            steps += 1
            if steps > MOST_STEPS:
                raise BackendError(
                    f"the pattern {pattern} can match {describe(subject)} in too many ways:"
                    f" none of the first {MOST_STEPS:,} steps decides it; give it fewer"
                    " alternatives, options and operands in either order"
                )
            step, first, second, rest = goals
            stack.append(step(self, first, second, rest))

    def _match(self, pattern: Pattern, subject: Subject, rest: Goals) -> Iterator[Goals]:
        if pattern in self.bound:
            if self.bound[pattern] is subject:
                yield rest
            else:
                self._refuse("expected {} again, found {}", self.bound[pattern], subject)
            return
        choosy = pattern.is_ambiguous and self._on_refusal is None
        if choosy and not self._could(pattern, subject):
            return
        for way in self._ways(pattern, subject):
            if choosy and not all(self._could(*part) for part in way):
                continue
            goals: Goals = (_ENDS.get(type(pattern), Matcher._bind), pattern, subject, rest)
            for part, found in reversed(way):
                goals = (Matcher._match, part, found, goals)
            yield goals

    def _ways(self, pattern: Pattern, subject: Subject) -> Iterator[Sequence[Part]]:
        """The parts that must match, for each way in which the pattern's own kind fits."""
        if isinstance(pattern, CallPattern):
            return self._calls(pattern, subject)
        if isinstance(pattern, LeafPattern):
            return self._leaf(pattern, subject)
        if isinstance(pattern, AltPattern):
            return iter([((pattern.first, subject),), ((pattern.second, subject),)])
        if isinstance(pattern, ItemPattern):
            return self._item(pattern, subject)
        return iter([((pattern.children[0], subject),)])

    def _could(self, pattern: Pattern, subject: Subject) -> bool:
        """True if the pattern fits where it stands alone, as if no part were shared or named.

        What this refuses is not tried again in each way in which other parts match.
        """
        pending: list[Part] = [(pattern, subject)]
        while pending:
            part = pending[-1]
            if part in self._fits:
                pending.pop()
                continue
            ways = list(self._ways(*part)) if self._may_hold(*part) else []
            unknown = [one for way in ways for one in way if one not in self._fits]
            if unknown:
                pending += unknown
            else:
                self._fits[part] = any(all(self._fits[one] for one in way) for way in ways)
        return self._fits[pattern, subject]

    def _may_hold(self, pattern: Pattern, subject: Subject) -> bool:
        return not isinstance(pattern, ConstrainedPattern) or pattern.refuse(subject) is None

    def _leaf(self, pattern: LeafPattern, subject: Subject) -> Iterator[Sequence[Part]]:
        value = subject.results[0] if isinstance(subject, Operation) else subject
        reason = pattern.refuse(value)
        if reason is None:
            yield ()
        else:
            self._refuse("{}", reason)

    def _item(self, pattern: ItemPattern, subject: Subject) -> Iterator[Sequence[Part]]:
        if not isinstance(subject, OpResult):
            self._refuse("expected {}, found {}", pattern, subject)
        elif pattern.index not in (None, subject.index):
            self._refuse("expected result #{}, found {}", pattern.index, subject)
        else:
            yield ((pattern.inner, subject.op if len(subject.op.results) > 1 else subject),)

    def _calls(self, pattern: CallPattern, subject: Subject) -> Iterator[Sequence[Part]]:
        op = self._called_op(pattern, subject)
        if op is not None:
            for operands in _arrangements(pattern, op):
                yield tuple(zip(pattern.args or (), operands, strict=False))

    def _bind(self, pattern: Pattern, subject: Subject, rest: Goals) -> Iterator[Goals]:
        self.bound[pattern] = subject
        yield rest
        del self.bound[pattern]

    def name(self, pattern: NamedPattern, subject: Subject, rest: Goals) -> Iterator[Goals]:
        """Yields if the name stands for no other value yet."""
        name = pattern.name
        before = self.names.get(name)
        if before not in (None, subject):
            self._refuse("'{}' is {} already, not {}", name, before, subject)
            return
        self.names[name] = subject
        yield from self._bind(pattern, subject, rest)
        if before is None:
            del self.names[name]

    def constrain(
        self, pattern: ConstrainedPattern, subject: Subject, rest: Goals
    ) -> Iterator[Goals]:
        """Yields if the condition holds."""
        reason = pattern.refuse(subject)
        if reason is None:
            yield from self._bind(pattern, subject, rest)
        else:
            self._refuse("{}", reason)

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

    def dominate(self, pattern: DominatorPattern, subject: Subject, rest: Goals) -> Iterator[Goals]:
        """Follows the operands of the child, those apart that it says are inputs."""
        parts = [part for part in parts_of(pattern.child) if part in self.bound]
        ops = dict.fromkeys(
            op_of(self.bound[part]) for part in parts if isinstance(part, CallPattern)
        )
        inputs = {
            self.bound[part]
            for part in parts
            if isinstance(part, LeafPattern) and not isinstance(part, WildcardPattern)
        }
        led = [
            value
            for op in ops
            for value in op.operands
            if value.owner not in ops and value not in inputs
        ]
        for value in led:
            if _is_input(value):
                self._refuse("{} does not lead to {}", value, pattern.parent)
                return
        goals: Goals = (Matcher._bind, pattern, subject, rest)
        yield (Matcher._climb, pattern, (tuple(led), ()), goals)

    def _climb(
        self,
        pattern: DominatorPattern,
        state: tuple[tuple[SSAValue, ...], tuple[Operation, ...]],
        rest: Goals,
    ) -> Iterator[Goals]:
        pending, found = list(state[0]), dict.fromkeys(state[1])
        while pending:
            value = pending.pop()
            op = value.owner
            if _is_input(value) or op in found:
                continue
            assert isinstance(op, Operation)
            if pattern.parent in self.bound:
                if op_of(self.bound[pattern.parent]) is op:
                    continue
            else:
                on: Goals = (Matcher._climb, pattern, (tuple(pending), tuple(found)), rest)
                yield (Matcher._match, pattern.parent, value, on)
            if not self._on_path(pattern, value):
                # Says more than that the value is no parent, which was noted just before.
                self._refuse("{} lies between {}", value, pattern, progress=1)
                return
            found[op] = None
            pending.extend(op.operands)
        if pattern.parent in self.bound:
            self.between[pattern] = tuple(found)
            yield rest
            del self.between[pattern]

    def _on_path(self, pattern: DominatorPattern, value: SSAValue) -> bool:
        op = value.owner
        if not isinstance(op, Operation) or self.scope.refuse(op) is not None:
            return False
        if all(map(_is_input, op.operands)):
            return False
        return any(True for _ in Matcher(self.scope).match(pattern.path, value))

    def complete(self, root: Operation, subject: Subject) -> Match | None:
        """The match that the state describes, unless a value leaves it or a leaf is inside."""
        found = Found(self.bound, self.between)
        if root not in found.ops:
            return None
        reason = found.refuse(root, subject)
        if reason is not None:
            self._refuse("{}", reason)
            return None
        return found.match(root, subject, {**self.names, **self.bound})


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


def _is_input(value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) or as_constant(value) is not None


_ENDS: dict[type[Pattern], Step] = {
    ConstrainedPattern: Matcher.constrain,
    DominatorPattern: Matcher.dominate,
    NamedPattern: Matcher.name,
}
"""What decides on a match of some kinds of patterns when all their parts match."""
