"""Search for matches by full backtracking, with an explicit stack."""

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
from byoc_mlir.patterns.scope import Scope
from byoc_mlir.patterns.subjects import Subject, as_constant, describe

_NO_MORE: Any = object()

EASY_STEPS = 1_000
"""Number of parts tried at one root before the search begins again with look-ahead."""

MOST_STEPS = 200_000
"""Number of parts tried at one root before a pattern is refused."""


Goals: TypeAlias = "tuple[Step, Any, Any, Goals] | None"
"""Remaining work as a linked list: the next step, its two arguments, and the rest."""

Step: TypeAlias = "Callable[[Matcher, Any, Any, Goals], Iterator[Goals]]"
"""Function that yields the remaining work, once for each way in which the step succeeds."""

Part: TypeAlias = tuple[Pattern, Subject]
Way: TypeAlias = tuple[Part, ...]
"""Parts that have to match together."""


class Matcher:
    """State of one search: the subject of each pattern object so far.

    A step of the search is a generator. It yields the remaining steps once for every way in which
    it succeeds, and undoes its changes of the state when resumed. The generators are on an explicit
    stack, so that patterns may be deep.
    """

    def __init__(self, scope: Scope, on_refusal: Callable[[int, str], None] | None = None):
        self.scope = scope
        self.bound: dict[Pattern, Subject] = {}
        self.names: dict[str, Subject] = {}
        self.between: dict[DominatorPattern, tuple[Operation, ...]] = {}
        self._on_refusal = on_refusal
        self._looks_ahead = False
        self._fits: dict[Part, bool] = {}

    def _refuse(self, reason: str, *parts: object, progress: int = 0) -> None:
        """Reports why a sub-pattern does not fit; each `{}` in `reason` stands for one of
        `parts`.
        """
        if self._on_refusal is not None:
            words = [
                describe(part) if isinstance(part, SSAValue | Operation) else part for part in parts
            ]
            self._on_refusal(len(self.bound) + progress, reason.format(*words))

    def match(self, pattern: Pattern, subject: Subject) -> Iterator[None]:
        """Yields for each way in which `pattern` matches `subject`; duplicates are possible.

        After `EASY_STEPS` steps, the search begins again, and looks ahead before it tries a
        sub-pattern.

        Raises:
            BackendError: there are too many ways to try.
        """
        stack, steps = [self.match_part(pattern, subject, None)], 0
        while stack:
            goals = next(stack[-1], _NO_MORE)
            if goals is _NO_MORE:
                stack.pop()
                continue
            if goals is None:
                yield
                continue
            steps += 1
            if steps == EASY_STEPS and self._on_refusal is None:
                stack = [self._looking_ahead(pattern, subject)]
                continue
            if steps > MOST_STEPS:
                raise BackendError(
                    f"the pattern {pattern} can match {describe(subject)} in too many ways:"
                    f" none of the first {MOST_STEPS:,} steps decides it; give it fewer"
                    " alternatives, options and operands in either order"
                )
            step, first, second, rest = goals
            stack.append(step(self, first, second, rest))

    def _looking_ahead(self, pattern: Pattern, subject: Subject) -> Iterator[Goals]:
        self._looks_ahead = True
        for state in (self.bound, self.names, self.between):
            state.clear()
        return self.match_part(pattern, subject, None)

    def match_part(self, pattern: Pattern, subject: Subject, rest: Goals) -> Iterator[Goals]:
        """Yields the remaining steps for each way in which `pattern` may match `subject`."""
        known = self.bound.get(pattern)
        if known is not None:
            if known is subject:
                return iter((rest,))
            self._refuse("expected {} again, found {}", known, subject)
            return iter(())
        if self._looks_ahead and pattern.is_ambiguous and not self._could(pattern, subject):
            return iter(())
        ways = _WAYS[type(pattern)](self, pattern, subject)
        if not ways:
            return iter(())
        goals: Goals = (_ENDS.get(type(pattern), Matcher.bind), pattern, subject, rest)
        if len(ways) > 1 or len(ways[0]) > 1:
            return self._try(ways, goals)
        return iter((_then(ways[0], goals),)) if ways[0] else self.bind(pattern, subject, rest)

    def _try(self, ways: Sequence[Way], goals: Goals) -> Iterator[Goals]:
        for way in ways:
            if not self._looks_ahead or all(self._could(*part) for part in way):
                yield _then(way, goals)

    def _could(self, pattern: Pattern, subject: Subject) -> bool:
        """True if the pattern fits on its own, regardless of the bindings of shared or named
        patterns.

        The result is cached, so that a failed sub-pattern is not tried again for each way in which
        other sub-patterns match.
        """
        pending: list[Part] = [(pattern, subject)]
        while pending:
            part = pending[-1]
            if part in self._fits:
                pending.pop()
                continue
            ways = _WAYS[type(part[0])](self, *part) if self._may_hold(*part) else ()
            unknown = [one for way in ways for one in way if one not in self._fits]
            if unknown:
                pending += unknown
            else:
                self._fits[part] = any(all(self._fits[one] for one in way) for way in ways)
        return self._fits[pattern, subject]

    def _may_hold(self, pattern: Pattern, subject: Subject) -> bool:
        return not isinstance(pattern, ConstrainedPattern) or pattern.refuse(subject) is None

    def leaf(self, pattern: LeafPattern, subject: Subject) -> Sequence[Way]:
        """Returns one way without sub-patterns if the value fits, else no way."""
        reason = pattern.refuse(subject.results[0] if isinstance(subject, Operation) else subject)
        if reason is None:
            return ((),)
        self._refuse("{}", reason)
        return ()

    def item(self, pattern: ItemPattern, subject: Subject) -> Sequence[Way]:
        """Returns the way to match the op that has the value among its results."""
        if not isinstance(subject, OpResult):
            self._refuse("expected {}, found {}", pattern, subject)
        elif pattern.index not in (None, subject.index):
            self._refuse("expected result #{}, found {}", pattern.index, subject)
        else:
            whole = subject.op if len(subject.op.results) > 1 else subject
            return (((pattern.inner, whole),),)
        return ()

    def call(self, pattern: CallPattern, subject: Subject) -> Sequence[Way]:
        """Returns the ways to match the operands, one for each order that the op allows."""
        op = self._called_op(pattern, subject)
        if op is None:
            return ()
        if not pattern.args:
            return ((),)
        first = tuple(zip(pattern.args, op.operands, strict=False))
        if len(op.operands) != 2 or not _commutes(op):
            return (first,)
        return (first, tuple(zip(pattern.args, reversed(op.operands), strict=False)))

    def alternatives(self, pattern: AltPattern, subject: Subject) -> Sequence[Way]:
        """Returns one way for each of the two alternatives."""
        return (((pattern.first, subject),), ((pattern.second, subject),))

    def inner(self, pattern: Pattern, subject: Subject) -> Sequence[Way]:
        """Returns the way to match the inner pattern."""
        return (((pattern.children[0], subject),),)

    def bind(self, pattern: Pattern, subject: Subject, rest: Goals) -> Iterator[Goals]:
        """Binds the pattern to the subject, and yields the remaining steps."""
        self.bound[pattern] = subject
        yield rest
        del self.bound[pattern]

    def name(self, pattern: NamedPattern, subject: Subject, rest: Goals) -> Iterator[Goals]:
        """Binds the pattern and its name, and yields the remaining steps, unless the name has
        another value already.
        """
        name = pattern.name
        before = self.names.get(name)
        if before not in (None, subject):
            self._refuse("'{}' is {} already, not {}", name, before, subject)
            return
        self.names[name] = subject
        yield from self.bind(pattern, subject, rest)
        if before is None:
            del self.names[name]

    def constrain(
        self, pattern: ConstrainedPattern, subject: Subject, rest: Goals
    ) -> Iterator[Goals]:
        """Binds the pattern and yields the remaining steps, if the condition holds."""
        reason = pattern.refuse(subject)
        if reason is None:
            yield from self.bind(pattern, subject, rest)
        else:
            self._refuse("{}", reason)

    def _called_op(self, pattern: CallPattern, subject: Subject) -> Operation | None:
        op = _op_behind(subject)
        if op is None or not pattern.accepts(op):
            self._refuse("expected {}, found {}", pattern, subject)
            return None
        if op is not subject and len(op.results) > 1:
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
        """Yields the step that follows the child's operands up to the parent; operands that are
        inputs of the child are exempt.
        """
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
        goals: Goals = (Matcher.bind, pattern, subject, rest)
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
                yield (Matcher.match_part, pattern.parent, value, on)
            if not self._on_path(pattern, value):
                # More specific than the refusal just before, that the value is no parent.
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
        """Returns the match for the bindings; `None` if an inner value is used outside, or a leaf
        is an op of the match.
        """
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


def _op_behind(subject: Subject) -> Operation | None:
    if type(subject) is OpResult:  # `isinstance` of an abstract class takes longer
        return subject.op
    return subject if isinstance(subject, Operation) else None


def _commutes(op: Operation) -> bool:
    return relay_name(op) in COMMUTATIVE and op.has_trait(Commutative)


def _is_input(value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) or as_constant(value) is not None


def _then(way: Way, goals: Goals) -> Goals:
    for part, found in reversed(way):
        goals = (Matcher.match_part, part, found, goals)
    return goals


_WAYS: dict[type[Pattern], Callable[[Matcher, Any, Any], Sequence[Way]]] = {
    AltPattern: Matcher.alternatives,
    CallPattern: Matcher.call,
    ConstantPattern: Matcher.leaf,
    ConstrainedPattern: Matcher.inner,
    DominatorPattern: Matcher.inner,
    ExprPattern: Matcher.leaf,
    ItemPattern: Matcher.item,
    NamedPattern: Matcher.inner,
    VarPattern: Matcher.leaf,
    WildcardPattern: Matcher.leaf,
}
"""Ways to match each kind of pattern; a chain of `isinstance` would be slower."""

_ENDS: dict[type[Pattern], Step] = {
    ConstrainedPattern: Matcher.constrain,
    DominatorPattern: Matcher.dominate,
    NamedPattern: Matcher.name,
}
"""Final step for some kinds of patterns, after all their parts have matched."""
