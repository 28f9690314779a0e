"""Reasons of refusals: every refusal has one, which can be read from the partitioned module."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from byoc_mlir.backends import Backend, register_backend
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns import CompositePattern, is_op, wildcard
from byoc_mlir.transforms.annotate_target import AnnotateTarget
from byoc_mlir.transforms.inline_partitions import inline_partitions
from byoc_mlir.transforms.merge_composite import MergeComposite
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.placement import HOST, Placement, placements
from byoc_mlir.transforms.prune_regions import prune_regions


class NoCode(Backend):
    def codegen(self, region, context):
        raise NotImplementedError  # models are partitioned here, not compiled


@register_backend
class Reasons(NoCode):
    name = "reasons"

    def op_rules(self):
        return {
            "add": lambda op: None,
            "tanh": lambda op: None,
            "sigmoid": lambda op: "sigmoid is slow",
        }

    def patterns(self):
        bias = wildcard().named("bias")
        return [
            CompositePattern(
                "reasons.add_tanh",
                is_op("tanh")(wildcard() + bias),
                lambda match: None if match.constant("bias") else "bias is not a constant",
            ),
            CompositePattern("reasons.exp_tanh", is_op("tanh")(is_op("exp")(wildcard()))),
        ]


@register_backend
class OtherReasons(NoCode):
    name = "other_reasons"

    def op_rules(self):
        return {"exp": lambda op: "only f64"}


TARGETS = ("reasons", "other_reasons")


def module(body: str) -> ModuleOp:
    text = f"func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {{{body}}}"
    parsed = Parser(make_context(), text).parse_module()
    parsed.verify()
    return parsed


def partitioned(body: str) -> ModuleOp:
    result = module(body)
    PartitionFor(TARGETS).apply(Context(), result)
    result.verify()
    return result


def rows(result: ModuleOp) -> dict[str, Placement]:
    return {row.nodes[0]: row for row in placements(result)}


UNARY = "(tensor<4xf32>) -> tensor<4xf32>"
BINARY = "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"
MIXED = f"""
  %0 = relay.add %x, %y : {BINARY} loc("Add")
  %1 = relay.tanh %0 : {UNARY} loc("Tanh")
  %2 = relay.exp %1 : {UNARY} loc("Exp")
  %3 = relay.sigmoid %2 : {UNARY} loc("Sigmoid")
  func.return %3 : tensor<4xf32>
"""
REFUSED = "reasons.add_tanh: bias is not a constant"


def test_reasons_of_rules_and_checks():
    assert rows(partitioned(MIXED)) == {
        "Add": Placement(("Add",), "add", "reasons", "reasons_main_0", "", REFUSED),
        "Tanh": Placement(("Tanh",), "tanh", "reasons", "reasons_main_0", "", REFUSED),
        "Exp": Placement(
            ("Exp",), "exp", HOST, reason="reasons: no rule for exp; other_reasons: only f64"
        ),
        "Sigmoid": Placement(
            ("Sigmoid",),
            "sigmoid",
            HOST,
            reason="reasons: sigmoid is slow; other_reasons: no rule for sigmoid",
        ),
    }


def test_ops_in_composites_have_their_own_rows():
    body = f"""
      %0 = relay.exp %x : {UNARY} loc("Exp")
      %1 = relay.tanh %0 : {UNARY} loc("Tanh")
      func.return %1 : tensor<4xf32>
    """
    found = rows(partitioned(body))
    place = ("reasons", "reasons_main_0", "reasons.exp_tanh")
    assert found == {
        "Exp": Placement(("Exp",), "exp", *place),
        "Tanh": Placement(("Tanh",), "tanh", *place),
    }


def test_a_check_that_refuses_reaches_the_host_op_too():
    body = f"""
      %0 = relay.add %x, %y : {BINARY} loc("Add")
      %1 = relay.tanh %0 : {UNARY} loc("Tanh")
      func.return %1 : tensor<4xf32>
    """
    result = module(body)
    PartitionFor(("reasons",)).apply(Context(), result)
    prune_regions(result, lambda region: "it is too small")
    result.verify()
    assert rows(result)["Tanh"] == Placement(
        ("Tanh",), "tanh", HOST, reason=f"demoted: it is too small; {REFUSED}"
    )


def test_a_region_that_fails_goes_back_with_the_reason():
    result = partitioned(MIXED)
    region = next(op for op in result.walk() if isinstance(op, FuncOp) and region_compiler(op))
    inline_partitions(result, {region: "compile_failed: no such primitive"})
    result.verify()
    found = rows(result)
    assert found["Add"].backend == HOST
    assert found["Add"].reason.startswith("compile_failed: no such primitive")
    assert found["Exp"].reason == "reasons: no rule for exp; other_reasons: only f64"
    assert [op.sym_name.data for op in result.walk() if isinstance(op, FuncOp)] == ["main"]


def test_prune_regions_asks_for_each_region():
    body = f"""
      %0 = relay.add %x, %y : {BINARY} loc("One")
      %1 = relay.exp %0 : {UNARY} loc("Exp")
      %2 = relay.add %1, %1 : {BINARY} loc("Two")
      func.return %2 : tensor<4xf32>
    """
    result = partitioned(body)
    asked: list[str] = []

    def refuse(region: FuncOp) -> str | None:
        asked.append(region.sym_name.data)
        return "slower" if len(asked) == 1 else None

    assert prune_regions(result, refuse) == ["reasons_main_0"]
    result.verify()
    assert asked == ["reasons_main_0", "reasons_main_1"]
    assert rows(result)["One"].reason == "demoted: slower"
    assert rows(result)["Two"].region == "reasons_main_1"


def test_no_targets_change_nothing():
    result = module(MIXED)
    before = str(result)
    PartitionFor(()).apply(Context(), result)
    assert str(result) == before


@register_backend
class IllNamed(NoCode):
    name = "ill_named"

    def patterns(self):
        return [CompositePattern("other.add", wildcard() + wildcard())]


@register_backend
class NoRoot(NoCode):
    name = "no_root"

    def patterns(self):
        return [CompositePattern("no_root.any", wildcard())]


@register_backend
class Broken(NoCode):
    name = "broken"

    def op_rules(self):
        return {"exp": lambda op: op.no_such_attribute}

    def patterns(self):
        return [
            CompositePattern("broken.add", wildcard() + wildcard(), lambda match: str(match["no"]))
        ]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("ill_named", "composite name 'other.add' must start with 'ill_named.'"),
        ("no_root", "pattern 'no_root.any' describes no op, only a value"),
        ("broken", "the check of pattern 'broken.add' failed on add: KeyError"),
        ("unknown", "no backend is named 'unknown'"),
    ],
)
def test_ill_formed_tables(target: str, message: str):
    with pytest.raises(BackendError, match=message):
        MergeComposite((target,)).apply(Context(), module(MIXED))


def test_a_rule_that_raises_names_itself():
    body = f"%0 = relay.exp %x : {UNARY}\n func.return %0 : tensor<4xf32>"
    with pytest.raises(BackendError, match="the rule of backend 'broken' for exp failed"):
        PartitionFor(("broken",)).apply(Context(), module(body))


def test_targets_one_after_the_other_leave_all_reasons():
    both, one_by_one = module(MIXED), module(MIXED)
    AnnotateTarget(("reasons", "other_reasons")).apply(Context(), both)
    for target in ("reasons", "other_reasons", "reasons"):
        AnnotateTarget((target,)).apply(Context(), one_by_one)
    assert str(one_by_one) == str(both)


def test_patterns_of_targets_one_after_the_other_leave_all_refusals():
    body = f"""
      %0 = relay.add %x, %y : {BINARY} loc("Add")
      %1 = relay.tanh %0 : {UNARY} loc("Tanh")
      func.return %1 : tensor<4xf32>
    """
    result = module(body)
    MergeComposite(("reasons",)).apply(Context(), result)
    MergeComposite(("other_reasons",)).apply(Context(), result)
    AnnotateTarget(("other_reasons",)).apply(Context(), result)
    assert REFUSED in rows(result)["Tanh"].reason
