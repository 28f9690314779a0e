"""Meaning of patterns, by trying every assignment of values to sub-patterns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from xdsl.ir import Block, Operation, OpResult, SSAValue

from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.patterns.language import (
    AltPattern,
    CallPattern,
    ConstantPattern,
    NamedPattern,
    Pattern,
    VarPattern,
    WildcardPattern,
)

COMMUTES = ("add", "multiply", "maximum", "minimum")
Solution = tuple[frozenset[Operation], tuple[tuple[str, SSAValue], ...]]


def solutions(pattern: Pattern, root: Operation) -> set[Solution]:
    """Returns the sets of ops, and the captures, of all matches with the given root."""
    block = root.parent
    assert block is not None
    found: set[Solution] = set()
    for choice in _choices(_alternatives(pattern)):
        active = _active(pattern, choice)
        nodes = [node for node in active if not isinstance(node, AltPattern | NamedPattern)]
        top = _resolved(pattern, choice)
        domains = [
            [value for value in _domain(node, block) if node is not top or value.owner is root]
            for node in nodes
        ]
        for values in product(*domains):
            value_of = dict(zip(nodes, values, strict=True))
            value_of.update({node: value_of[_resolved(node, choice)] for node in active})
            if _consistent(value_of):
                solution = _solution(value_of, root)
                if solution is not None:
                    found.add(solution)
    return found


def _resolved(node: Pattern, choice: Mapping[Pattern, Pattern]) -> Pattern:
    while isinstance(node, AltPattern | NamedPattern):
        node = choice[node] if node in choice else node.children[0]
    return node


def _alternatives(pattern: Pattern) -> list[AltPattern]:
    seen: dict[Pattern, None] = {}
    pending = [pattern]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen[node] = None
            pending.extend(node.children)
    return [node for node in seen if isinstance(node, AltPattern)]


def _choices(alternatives: Sequence[AltPattern]) -> Iterator[Mapping[Pattern, Pattern]]:
    for sides in product((0, 1), repeat=len(alternatives)):
        yield {node: node.children[side] for node, side in zip(alternatives, sides, strict=True)}


def _active(pattern: Pattern, choice: Mapping[Pattern, Pattern]) -> list[Pattern]:
    active: dict[Pattern, None] = {}
    pending = [pattern]
    while pending:
        node = pending.pop()
        if node not in active:
            active[node] = None
            pending.extend([choice[node]] if node in choice else node.children)
    return list(active)


def _domain(node: Pattern, block: Block) -> list[SSAValue]:
    results = [value for op in block.ops for value in op.results]
    match node:
        case CallPattern(names=names):
            return [
                value
                for value in results
                if not isinstance(value.owner, ConstantOp)
                and (names is None or relay_name(_op(value)) in names)
            ]
        case ConstantPattern():
            return [value for value in results if isinstance(value.owner, ConstantOp)]
        case VarPattern():
            return list(block.args)
        case _:
            return [*block.args, *results]


def _consistent(value_of: Mapping[Pattern, SSAValue]) -> bool:
    for node, value in value_of.items():
        if isinstance(node, CallPattern) and node.args is not None:
            wanted = [value_of[arg] for arg in node.args]
            if not any(_same(wanted, order) for order in _orders(node, _op(value))):
                return False
    return True


def _orders(node: CallPattern, op: Operation) -> list[list[SSAValue]]:
    operands = list(op.operands)
    orders = [operands]
    if relay_name(op) in COMMUTES:
        orders.append(operands[::-1])
    count = len(node.args or ())
    if node.names is None:
        return [order[:count] for order in orders]
    return orders if count == len(operands) else []


def _same(one: Sequence[SSAValue], two: Sequence[SSAValue]) -> bool:
    return len(one) == len(two) and all(a is b for a, b in zip(one, two, strict=True))


def _solution(value_of: Mapping[Pattern, SSAValue], root: Operation) -> Solution | None:
    ops = {_op(value) for node, value in value_of.items() if isinstance(node, CallPattern)}
    names: dict[str, SSAValue] = {}
    for node, value in value_of.items():
        if isinstance(node, NamedPattern) and names.setdefault(node.name, value) is not value:
            return None
        leaf = isinstance(node, WildcardPattern | ConstantPattern | VarPattern)
        if leaf and value.owner in ops:
            return None
    if root not in ops:
        return None
    for op in ops - {root}:
        if any(use.operation not in ops for value in op.results for use in value.uses):
            return None
    return frozenset(ops), tuple(sorted(names.items(), key=lambda item: item[0]))


def _op(value: SSAValue) -> Operation:
    assert isinstance(value, OpResult)
    return value.op
