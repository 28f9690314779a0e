"""The pass `annotate-target`: asks the backends' rules which single ops they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from byoc_mlir.backends import Rule, get_backend
from byoc_mlir.dialects.byoc import REASON, CompositeOp, refusals
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.dialects.relay.control import ControlOp
from byoc_mlir.errors import BackendError
from byoc_mlir.limits import in_time
from byoc_mlir.patterns import checked_reason
from byoc_mlir.transforms.annotated_regions import AnnotatedRegion, find_regions, insert_annotations
from byoc_mlir.transforms.blocks import (
    can_offload,
    has_effects,
    is_node,
    live_ops,
    partitioned_blocks,
    region_symbols,
)

CONTROL_FLOW = "the host runs control flow; what is inside has a place of its own"
"""Reason of ops that no backend can run."""

UNUSED = "its results are not used"
"""Reason of ops that the pass skips because no result is used."""


@dataclass(frozen=True)
class AnnotateTarget(ModulePass):
    """Annotates each op and composite for the first of `targets` whose backend accepts it.

    A composite belongs to the backend in its name. Existing annotations stay. Ops that stay on the
    host get `byoc.reason`, with the reason of every backend that refused them, now or earlier.

    ```mlir
    %0 = relay.nn.relu %x : (tensor<…>) -> tensor<…>
    ```

    becomes

    ```mlir
    %0 = byoc.compiler_begin %x for "dnnl" : tensor<…>
    %1 = relay.nn.relu %0 : (tensor<…>) -> tensor<…>
    %2 = byoc.compiler_end %1 for "dnnl" : tensor<…>
    ```
    """

    name = "annotate-target"

    targets: tuple[str, ...]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        backends = [get_backend(target) for target in self.targets]
        rules = {backend.name: backend.op_rules() for backend in backends}
        if not rules:
            return
        regions = region_symbols(op)
        for block in partitioned_blocks(op):
            _annotate_block(block, rules, regions)


def _annotate_block(
    block: Block, rules: Mapping[str, Mapping[str, Rule]], outlined: frozenset[str]
) -> None:
    annotated = {op for region in find_regions(block) for op in region.ops}
    live = live_ops(block)
    regions: list[AnnotatedRegion] = []
    for op in in_time(block.ops):
        if op in annotated or not is_node(op) or _is_region_call(op, outlined):
            continue
        if op not in live:
            op.attributes[REASON] = StringAttr(UNUSED)
            continue
        target, reasons = _choose(op, rules)
        if target is None:
            _give_reasons(op, [*reasons, *refusals(op)])
        else:
            op.attributes.pop(REASON, None)
            regions.append(AnnotatedRegion(target, (op,)))
    insert_annotations(regions)


def _give_reasons(op: Operation, reasons: Sequence[str]) -> None:
    """Adds reasons to the op's earlier ones in `byoc.reason`, without repeating any."""
    known = op.attributes.get(REASON)
    said = known.data if isinstance(known, StringAttr) and known.data != UNUSED else ""
    new = [reason for reason in reasons if f"; {reason}; " not in f"; {said}; "]
    op.attributes[REASON] = StringAttr("; ".join(filter(None, [said, *new])))


def _is_region_call(op: Operation, outlined: frozenset[str]) -> bool:
    return op.name == "func.call" and not has_effects(op, outlined)


def _choose(
    op: Operation, rules: Mapping[str, Mapping[str, Rule]]
) -> tuple[str | None, Sequence[str]]:
    """Returns the first target that accepts the op, and no reasons; or `None` and the reasons of
    all targets.
    """
    if isinstance(op, CompositeOp):
        if op.compiler in rules:
            return op.compiler, ()
        return None, [f"composite '{op.composite_name.data}' belongs to no requested target"]
    if isinstance(op, ControlOp):
        return None, [CONTROL_FLOW]
    if not can_offload(op):
        return None, [f"{op.name} has side effects or regions"]
    reasons: list[str] = []
    for target, by_name in rules.items():
        reason = ask_rule(target, by_name, op)
        if reason is None:
            return target, ()
        reasons.append(f"{target}: {reason}")
    return None, reasons


def ask_rule(target: str, by_name: Mapping[str, Rule], op: Operation) -> str | None:
    """Returns why a backend's rules refuse an op, or `None` if they accept it.

    Raises:
        BackendError: the rule failed.
    """
    name = relay_name(op)
    if name not in by_name:
        return f"no rule for {name}"
    who = f"the rule of backend '{target}' for {name}"
    try:
        answer = by_name[name](op)
    except Exception as error:  # name the rule, which is a backend's code, and the op
        raise BackendError(f"{who} failed: {error!r}") from error
    return checked_reason(answer, who)
