"""What rules and patterns say of the ops of a model that is not partitioned yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from byoc_mlir.backends import get_backend
from byoc_mlir.compiler.debugging.explanation import Verdict
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.patterns import CompositePattern, all_matches, nearest_miss
from byoc_mlir.transforms.annotate_target import ask_rule
from byoc_mlir.transforms.blocks import blocks_of, can_offload, host_functions, is_constant
from byoc_mlir.transforms.merge_composite import ask_check, pattern_table

REACH = 4
"""How many ops behind a node's may be the root of a pattern that it is in."""


def node_ops(module: ModuleOp, node: str) -> list[Operation]:
    """The ops of the host that stand for an ONNX node, without constants."""
    return [op for op in _all_ops(module) if node in node_names(op) and not is_constant(op)]


def rule_verdicts(ops: Sequence[Operation], targets: Sequence[str]) -> Iterator[Verdict]:
    """What the rules of each backend say of each op."""
    for target in targets:
        backend = get_backend(target)
        rules = backend.op_rules()
        for op in ops:
            reason = ask_rule(backend.name, rules, op)
            who = f"{backend.name}, {relay_name(op)}"
            yield Verdict(who, "refused" if reason else "accepted", node_names(op), reason or "")


def patterns_of(ops: Sequence[Operation], targets: Sequence[str]) -> list[Verdict]:
    """What patterns say that could hold one of the ops: matches first, then the nearest misses."""
    inside, roots = set(ops), _roots(ops)
    names = {relay_name(op) for op in ops}
    rows = [row for target in targets for row in pattern_table(target)]
    found = dict.fromkeys(
        one for row in rows for root in roots for one in _verdicts(row, root, inside)
    )
    matched = [one for one in found if one.outcome != "missed"]
    related = {row.name for row in rows if not names.isdisjoint(row.pattern.needs)}
    missed = [
        one for one in found if one.outcome == "missed" and one.fitted > 0 and one.who in related
    ]
    return [*matched, *sorted(missed, key=lambda one: -one.fitted)]


def matches_of(row: CompositePattern, module: ModuleOp) -> list[Verdict]:
    """What one pattern says wherever it could match."""
    heads = row.pattern.heads
    roots = [
        op
        for op in _all_ops(module)
        if can_offload(op) and (heads is None or relay_name(op) in heads)
    ]
    found = dict.fromkeys(one for root in roots for one in _verdicts(row, root, None))
    return sorted(found, key=lambda one: -one.fitted)


def _verdicts(
    row: CompositePattern, root: Operation, inside: set[Operation] | None
) -> Iterator[Verdict]:
    """Of one pattern at one root; only of matches that hold one of some ops, if there are any."""
    heads = row.pattern.heads
    if heads is not None and relay_name(root) not in heads:
        return
    seen = False
    for match in all_matches(row.pattern, root):
        seen = True
        if inside is not None and inside.isdisjoint(match.ops):
            continue
        reason = ask_check(row, match)
        nodes = tuple(dict.fromkeys(name for op in match.ops for name in node_names(op)))
        yield Verdict(row.name, "refused" if reason else "accepted", nodes, reason or "")
    if seen:
        return
    miss = nearest_miss(row.pattern, root)
    if miss is not None:
        yield Verdict(row.name, "missed", node_names(root), miss.reason, miss.fitted)


def _roots(ops: Sequence[Operation]) -> list[Operation]:
    """The ops and those that read what they give, some steps on."""
    found = dict.fromkeys(ops)
    layer: Iterable[Operation] = ops
    for _ in range(REACH):
        layer = [use.operation for op in layer for result in op.results for use in result.uses]
        found.update(dict.fromkeys(op for op in layer if can_offload(op)))
    return list(found)


def _all_ops(module: ModuleOp) -> Iterator[Operation]:
    for function in host_functions(module):
        for block in blocks_of(function):
            yield from block.ops
