"""The pass `merge-composite`: wraps matches of the backends' patterns in composites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.backends import get_backend
from byoc_mlir.dialects.byoc import REFUSED, CompositeOp, YieldOp
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.disabled import is_disabled
from byoc_mlir.errors import BackendError
from byoc_mlir.limits import in_time
from byoc_mlir.patterns import CompositePattern, Match, Scope, all_matches, checked_reason
from byoc_mlir.transforms.annotated_regions import find_regions
from byoc_mlir.transforms.blocks import (
    can_offload,
    erase_unused,
    live_ops,
    move_ops,
    partitioned_blocks,
)
from byoc_mlir.transforms.region_graph import check_annotations


@dataclass(frozen=True)
class MergeComposite(ModulePass):
    """Wraps matches of the backends' patterns in `byoc.composite`s.

    The pass tries backends in the given order, and patterns in the order of their table. For each
    pattern, it begins with the ops nearest to the block's end. If a pattern's check refuses a
    match, its ops remain available to other patterns, with the reason in `byoc.refused`. In an
    annotated region only the patterns of its backend apply.

    ```mlir
    %0 = relay.nn.conv2d %x, %w : (tensor<…>, tensor<…>) -> tensor<…>
    %1 = relay.nn.relu %0 : (tensor<…>) -> tensor<…>
    ```

    becomes, with `targets=dnnl`,

    ```mlir
    %1 = byoc.composite "dnnl.conv2d_relu" from "nn.conv2d_nn.relu_"
        (%a = %x : tensor<…>, %b = %w : tensor<…>) -> tensor<…> {
      %2 = relay.nn.conv2d %a, %b : (tensor<…>, tensor<…>) -> tensor<…>
      %3 = relay.nn.relu %2 : (tensor<…>) -> tensor<…>
      byoc.yield %3 : tensor<…>
    }
    ```
    """

    name = "merge-composite"

    targets: tuple[str, ...]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        check_annotations(op)
        table = [pattern for target in self.targets for pattern in pattern_table(target)]
        for block in partitioned_blocks(op):
            _merge_block(block, table)


def pattern_table(target: str) -> Sequence[CompositePattern]:
    """Returns the pattern table of a backend, without disabled patterns.

    Raises:
        BackendError: there is no such backend, or a row is ill-formed.
    """
    backend = get_backend(target)
    table, prefix = backend.patterns(), f"{backend.name}."
    for row in table:
        if not row.name.startswith(prefix) or row.name == prefix:
            raise BackendError(
                f"backend '{backend.name}': composite name '{row.name}' must start with '{prefix}'"
            )
        if row.pattern.heads == frozenset():
            raise BackendError(f"pattern '{row.name}' describes no op, only a value")
    return [row for row in table if not is_disabled(row.name)]


def _merge_block(block: Block, table: Sequence[CompositePattern]) -> None:
    candidates = _Candidates(block)
    annotated = {op: region.compiler for region in find_regions(block) for op in region.ops}
    taken = set[Operation]()
    found: list[tuple[str, Match]] = []
    refusals: dict[Operation, dict[str, None]] = {}
    for row in table:
        for op in in_time(candidates.roots(row)):
            if annotated.get(op, row.backend) != row.backend:
                continue
            match = None if op in taken else _accepted(row, op, Scope(block, taken), refusals)
            if match is not None:
                taken.update(match.ops)
                found.append((row.name, match))
    for op, reasons in refusals.items():
        if op not in taken:
            known = op.attributes.get(REFUSED)
            said = known.data if isinstance(known, ArrayAttr) else ()
            op.attributes[REFUSED] = ArrayAttr(dict.fromkeys((*said, *map(StringAttr, reasons))))
    replaced = dict[SSAValue, SSAValue]()
    for name, match in found:
        _wrap(name, match, replaced)
    embedded = dict.fromkeys(value.owner for _, match in found for value in match.constants)
    erase_unused(op for op in embedded if isinstance(op, Operation))


class _Candidates:
    """Live ops of a block by name, in reverse program order."""

    def __init__(self, block: Block):
        live = live_ops(block)
        self._all = [op for op in block.ops if op in live and can_offload(op)]
        self._by_name: dict[str, list[int]] = {}
        for position, op in enumerate(self._all):
            self._by_name.setdefault(relay_name(op), []).append(position)

    def roots(self, row: CompositePattern) -> Iterator[Operation]:
        """Yields the ops that can be the root of a match."""
        heads = row.pattern.heads
        if heads is not None and self._by_name.keys().isdisjoint(heads):
            return iter(())
        if not row.pattern.needs <= self._by_name.keys():
            return iter(())
        if heads is None:
            return reversed(self._all)
        positions = (position for name in heads for position in self._by_name.get(name, ()))
        return (self._all[position] for position in sorted(positions, reverse=True))


def _accepted(
    row: CompositePattern,
    op: Operation,
    scope: Scope,
    refusals: dict[Operation, dict[str, None]],
) -> Match | None:
    """Returns the first match of the row at `op` that the row's check accepts, or `None`.

    Raises:
        BackendError: the check failed, or there are too many ways to match.
    """
    matches = all_matches(row.pattern, op, scope)
    while (match := _next_match(row, matches)) is not None:
        reason = ask_check(row, match)
        if reason is None:
            return match
        for refused in match.ops:
            refusals.setdefault(refused, {})[f"{row.name}: {reason}"] = None
    return None


def _next_match(row: CompositePattern, matches: Iterator[Match]) -> Match | None:
    try:
        return next(matches, None)
    except BackendError as error:
        raise BackendError(
            f"pattern '{row.name}': {error}; disable=('{row.name}',) compiles without it"
        ) from error


def ask_check(row: CompositePattern, match: Match) -> str | None:
    """Returns why a pattern's check refuses a match, or `None` if it accepts it.

    Raises:
        BackendError: the check failed.
    """
    if row.check is None:
        return None
    who = f"the check of pattern '{row.name}'"
    try:
        answer = row.check(match)
    except Exception as error:  # name the check, which is a backend's code, and the op
        raise BackendError(f"{who} failed on {relay_name(match.root)}: {error!r}") from error
    return checked_reason(answer, who)


def _wrap(name: str, match: Match, replaced: dict[SSAValue, SSAValue]) -> None:
    """Moves the ops of a match into a composite; `replaced` maps the ops' results to results of
    composites.
    """
    inputs = [replaced.get(value, value) for value in match.inputs]
    block = Block(arg_types=[value.type for value in inputs])
    types = [value.type for value in match.results]
    composite = CompositeOp(name, match.origin, inputs, types, Region(block))
    composite.location = fused_location(match.ops)
    host = match.root.parent
    assert host is not None
    host.insert_op_before(composite, match.root)
    for value, result in zip(match.results, composite.results, strict=True):
        result.name_hint = value.name_hint
        value.replace_all_uses_with(result)
        replaced[value] = result
    for op in match.ops:
        op.attributes.pop(REFUSED, None)
    constants = [one.owner for one in match.constants if isinstance(one.owner, Operation)]
    move_ops(match.ops, block, inputs, constants)
    block.add_op(YieldOp(match.results))
