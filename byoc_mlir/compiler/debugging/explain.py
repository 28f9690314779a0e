"""Explanation of one node of a model, or of the matches of one pattern.

The module tests the backends' rules and patterns on the ops before they are partitioned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from byoc_mlir.backends import backend_names, get_backend
from byoc_mlir.backends.options import Target
from byoc_mlir.compiler import pipeline
from byoc_mlir.compiler.build import Build
from byoc_mlir.compiler.debugging.explanation import (
    Change,
    Decision,
    DescribedOp,
    NodeExplanation,
    PatternExplanation,
)
from byoc_mlir.compiler.link import steps_of
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.partition.report import report_rows
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.source import Shapes, read_source
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.errors import BackendError, InvalidInputError
from byoc_mlir.ir_dump import applying_with
from byoc_mlir.names import meant
from byoc_mlir.patterns import CompositePattern, all_matches, nearest_miss, pattern_text
from byoc_mlir.runtime.program import Step
from byoc_mlir.runtime.report import Report
from byoc_mlir.transforms.annotate_target import ask_rule
from byoc_mlir.transforms.blocks import (
    blocks_of,
    can_offload,
    host_functions,
    is_annotation,
    is_constant,
)
from byoc_mlir.transforms.merge_composite import MergeComposite, ask_check, pattern_table

REACH = 4
"""Maximum number of ops between a node's op and the root of a pattern that contains it."""


def node_ops(module: ModuleOp, node: str) -> list[Operation]:
    """Returns the host's ops that compute an ONNX node, without constants."""
    return [op for op in _all_ops(module) if node in node_names(op) and not is_constant(op)]


def rule_decisions(ops: Sequence[Operation], targets: Sequence[str]) -> Iterator[Decision]:
    """Yields the decision of each backend's rules for each op."""
    for target in targets:
        backend = get_backend(target)
        rules = backend.op_rules()
        for op in ops:
            reason = ask_rule(backend.name, rules, op)
            who = f"{backend.name}, {relay_name(op)}"
            yield Decision(who, "refused" if reason else "accepted", node_names(op), reason or "")


def patterns_of(ops: Sequence[Operation], targets: Sequence[str]) -> list[Decision]:
    """Returns the decisions of patterns whose match could contain one of the ops.

    Matches come first, then near misses.
    """
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


def matches_of(row: CompositePattern, module: ModuleOp) -> list[Decision]:
    """Returns the decisions of one pattern at all its possible roots."""
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
) -> Iterator[Decision]:
    """Yields the decisions of one pattern at one root.

    If `inside` is given, only matches that contain one of these ops count.
    """
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
        yield Decision(row.name, "refused" if reason else "accepted", nodes, reason or "")
    if seen:
        return
    miss = nearest_miss(row.pattern, root)
    if miss is not None:
        yield Decision(row.name, "missed", node_names(root), miss.reason, miss.fitted)


def _roots(ops: Sequence[Operation]) -> list[Operation]:
    """Returns the ops and their direct and indirect users, up to `REACH` steps away."""
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


_WRAPPERS = ("byoc.composite", FuncOp.name, CallOp.name, EmptyOp.name)
"""Ops that only hold others, call them, or denote memory."""

_FORM = ("indexing_maps", "iterator_types", "operandSegmentSizes")
"""Attributes of an op's syntax rather than its semantics."""


def described_ops(ops: Iterable[Operation]) -> tuple[DescribedOp, ...]:
    """Describes the ops that compute something."""
    return tuple(
        _described(op)
        for op in ops
        if op.name not in _WRAPPERS and not is_constant(op) and not is_annotation(op)
    )


def _described(op: Operation) -> DescribedOp:
    attributes = {name: _text(value) for name, value in op.properties.items() if name not in _FORM}
    return DescribedOp(relay_name(op), attributes, tuple(str(one.type) for one in op.results))


def _text(value: Attribute) -> str:
    if isinstance(value, DenseArrayBase):
        return str(list(cast("DenseArrayBase[Any]", value).get_values()))
    if isinstance(value, IntegerAttr | FloatAttr):
        return str(cast(Any, value).value.data)
    return f'"{value.data}"' if isinstance(value, StringAttr) else str(value)


_LAST = "convert-relay-to-linalg"
"""The last pass to explain; after it, a node becomes many ops."""


def explain_node(request: Request, node: str, shapes: Shapes) -> NodeExplanation:
    """Explains how an ONNX node is compiled.

    Args:
        request: options of the compilation.
        node: name of the node in reports.
        shapes: shapes of the inputs that have symbolic dimensions.

    Raises:
        InvalidInputError: the model has no such node, or a shape is missing.
        ByocError: as for `compile`.
    """
    build = _build(replace(request, profile=True), shapes)
    watcher = _Watcher(node, build.options.targets)
    with ir_boundary("explain"), pipeline.compiling(build, None), applying_with(watcher):
        pipeline.import_model(build)
        _check_node(build, node)
        imported = described_ops(node_ops(build.module, node))
        for stage in (*_STAGES, pipeline.prune, pipeline.generate, pipeline.lower, pipeline.link):
            stage(build)
        steps = _steps_of_node(build, node)
    (row,) = (row for row in build.report if row.node == node)
    changes, rules, patterns = watcher.changes, watcher.rules, watcher.patterns
    return NodeExplanation(row, imported, tuple(changes), tuple(rules), tuple(patterns), steps)


def explain_pattern(request: Request, name: str, shapes: Shapes) -> PatternExplanation:
    """Explains the matches and near misses of a backend's pattern in a model.

    Arguments and errors are the same as for `explain_node`, and:

    Raises:
        BackendError: no backend has such a pattern.
    """
    build = _build(request, shapes)
    if name in build.options.disable:
        raise BackendError(f"the pattern '{name}' is disabled; remove it from `disable`")
    row = _pattern(name, build.options.targets)
    found: list[Decision] = []
    watcher = _BeforePartition(lambda module: found.extend(matches_of(row, module)))
    with ir_boundary("explain"), pipeline.compiling(build, None), applying_with(watcher):
        pipeline.import_model(build)
        for stage in _STAGES:
            stage(build)
        report = Report(tuple(report_rows(build.module, build.imported.nodes)))
    composites = {row.node: row.composite or row.placement for row in report}
    kinds = {
        outcome: tuple(one for one in found if one.outcome == outcome)
        for outcome in ("accepted", "refused", "missed")
    }
    accepted = tuple(_with_taker(one, composites) for one in kinds["accepted"])
    return PatternExplanation(
        name, pattern_text(row.pattern), accepted, kinds["refused"], kinds["missed"]
    )


_STAGES: tuple[Callable[[Build], None], ...] = (pipeline.canonicalise, pipeline.partition)


@dataclass
class _BeforePartition:
    """Inspector of the module before patterns are matched."""

    look: Callable[[ModuleOp], object]

    def apply(self, pass_: ModulePass, context: Context, module: ModuleOp) -> None:
        if pass_.name == MergeComposite.name:
            self.look(module)
        pass_.apply(context, module)

    def write(self, name: str, text: str) -> None:
        pass


@dataclass
class _Watcher:
    """Record of the changes that passes make to a node's ops, and of the decisions of rules and
    patterns.
    """

    node: str
    targets: Sequence[str]
    changes: list[Change] = field(default_factory=list[Change])
    rules: list[Decision] = field(default_factory=list[Decision])
    patterns: list[Decision] = field(default_factory=list[Decision])
    is_done: bool = False

    def apply(self, pass_: ModulePass, context: Context, module: ModuleOp) -> None:
        if pass_.name == MergeComposite.name:
            ops = node_ops(module, self.node)
            self.rules += rule_decisions(ops, self.targets)
            self.patterns += patterns_of(ops, self.targets)
        before = self._described(module)
        pass_.apply(context, module)
        after = self._described(module)
        is_pass_of_passes = bool(self.changes) and self.changes[-1].after == after
        if after != before and not self.is_done and not is_pass_of_passes:
            self.changes.append(Change(pass_.name, before, after))
        self.is_done |= pass_.name == _LAST

    def write(self, name: str, text: str) -> None:
        pass

    def _described(self, module: ModuleOp) -> tuple[DescribedOp, ...]:
        if self.is_done:
            return ()
        return described_ops(op for op in module.walk() if self.node in node_names(op))


def _build(request: Request, shapes: Shapes) -> Build:
    source = read_source(request.model, request.sizes, trusted=request.trusted)
    for name in shapes.keys() - {info.name for info in source.inputs}:
        listed = ", ".join(map(str, source.inputs))
        raise InvalidInputError(f"the model has no input '{name}'; its inputs are {listed}")
    known: dict[str, tuple[int, ...]] = {}
    for info in source.inputs:
        sizes = shapes.get(info.name, info.shape)
        known[info.name] = tuple(size for size in sizes if isinstance(size, int))
        if len(known[info.name]) != len(sizes):
            raise InvalidInputError(f"give the shape of {info} with --shape {info.name}=1,2,3")
    return Build(source, known, {}, CompileOptions.of(request))


def _check_node(build: Build, node: str) -> None:
    names = [one.name for one in build.imported.nodes]
    if not names:
        raise InvalidInputError("the model is in MLIR, and has no ONNX nodes")
    if node not in names:
        guess = meant(node, names) or f"; the first ones are {', '.join(names[:5])}"
        raise InvalidInputError(f"the model has no node '{node}'{guess}")


def _pattern(name: str, targets: Sequence[str]) -> CompositePattern:
    backend = name.partition(".")[0]
    target = next((one for one in targets if Target.parse(one).name == backend), backend)
    if backend not in backend_names():
        raise BackendError(
            f"no backend has a pattern '{name}'; the part before the dot is a backend's name, known"
            f" are {', '.join(backend_names())}{meant(backend, backend_names())}"
        )
    table = {row.name: row for row in pattern_table(target)}
    if name not in table:
        guess = meant(name, table)
        raise BackendError(f"backend '{get_backend(target).name}' has no pattern '{name}'{guess}")
    return table[name]


def _steps_of_node(build: Build, node: str) -> tuple[Step, ...]:
    """Returns the steps that compute a node.

    The call of a region counts only if the region has no steps of its own.
    """
    steps = [step for step in steps_of(build) if node in step.nodes]
    inside = {step.region for step in steps if step.region}
    return tuple(dict.fromkeys(step for step in steps if step.implementation not in inside))


def _with_taker(decision: Decision, composites: dict[str, str]) -> Decision:
    """Adds to a match's reason the composite that finally contains the ops."""
    takers = dict.fromkeys(composites.get(node, "") for node in decision.nodes)
    others = [taker for taker in takers if taker and taker != decision.who]
    return replace(decision, reason=f"taken by {', '.join(others)}") if others else decision
