"""`rewrite`, and the methods that ops have before and after they are called."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_graphs import VECTOR, Graph
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, PatternRewriteWalker, RewritePattern

from byoc_mlir.dialects.locations import node_location, node_names
from byoc_mlir.dialects.relay.elementwise import AbsOp, ExpOp, MultiplyOp, SqrtOp, TanhOp
from byoc_mlir.dialects.relay.nn import ReluOp
from byoc_mlir.dialects.relay.transform import SplitOp
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns import Match, Pattern, is_op, is_tuple_get_item, match_pattern, rewrite
from byoc_mlir.patterns import wildcard as any_value
from byoc_mlir.patterns.language import OpPattern

x = any_value()
ROOT_OF_SQUARE = is_op("sqrt")(x * x)


def roots(leave: bool = False) -> Graph:
    """Returns `relu(sqrt(x * x))`; if `leave` is true, the square is a result as well."""
    g = Graph()
    square = g(MultiplyOp, g.args[0], g.args[0])
    square.op.location = node_location("square")
    root = g(SqrtOp, square)
    root.op.location = node_location("root")
    g.finish(g(ReluOp, root), *([square] if leave else []))
    return g


def rewritten(g: Graph, pattern: Pattern, callback: Callable[[Match], Operation | None]) -> str:
    function = g.block.parent_op()
    assert function is not None
    module = ModuleOp([function])
    PatternRewriteWalker(rewrite(pattern, callback)).rewrite_module(module)
    module.verify()
    return " ".join(op.name.removeprefix("relay.") for op in g.block.ops)


def test_a_match_is_replaced_and_keeps_its_nodes() -> None:
    g = roots()
    assert rewritten(g, ROOT_OF_SQUARE, lambda match: AbsOp(match[x])) == "abs nn.relu func.return"
    first = g.block.first_op
    assert first is not None
    assert node_names(first) == ("square", "root")


def test_a_match_that_is_left_or_leaves_the_graph_stays() -> None:
    assert rewritten(roots(), ROOT_OF_SQUARE, lambda match: None).startswith("multiply sqrt")
    found = rewritten(roots(leave=True), ROOT_OF_SQUARE, lambda match: AbsOp(match[x]))
    assert found.startswith("multiply sqrt")


def test_several_ops_replace_a_match() -> None:
    def thrice(match: Match) -> list[Operation]:
        ops: list[Operation] = [ExpOp(match[x])]
        ops.append(TanhOp(ops[0].results[0]))
        return [*ops, AbsOp(ops[1].results[0])]

    g = roots()
    function = g.block.parent_op()
    assert function is not None
    walker = PatternRewriteWalker(rewrite(ROOT_OF_SQUARE, thrice))
    walker.rewrite_module(ModuleOp([function]))
    assert [op.name for op in g.block.ops][:3] == ["relay.exp", "relay.tanh", "relay.abs"]


class _OwnPattern(RewritePattern):
    """Rewrite pattern of xDSL that matches by itself, as in `docs/from-tvm.md`."""

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        match = match_pattern(ROOT_OF_SQUARE, op)
        if match is not None:
            rewriter.replace_op(op, AbsOp(match[x]))


def test_a_rewrite_pattern_may_match_by_itself() -> None:
    g = roots()
    function = g.block.parent_op()
    assert function is not None
    PatternRewriteWalker(_OwnPattern()).rewrite_module(ModuleOp([function]))
    assert [op.name for op in g.block.ops][:3] == ["relay.multiply", "relay.abs", "relay.nn.relu"]


def test_one_result_of_several_is_replaced() -> None:
    half = TensorType(f32, [2])
    g = Graph(VECTOR, half)
    halves = g.add(SplitOp(g.args[0], sections=[2, 2], axis=0))
    g.finish(g(ReluOp, halves.results[1]))
    second = is_tuple_get_item(is_op("split")(x), 1)
    found = rewritten(g, second, lambda match: TanhOp(g.args[1]))
    assert found == "tanh nn.relu func.return"


def test_an_op_of_another_type_is_refused() -> None:
    with pytest.raises(BackendError, match="cannot be replaced by an op with results of"):
        rewritten(roots(), ROOT_OF_SQUARE, lambda match: SplitOp(match[x], sections=[2, 2], axis=0))


REFINEMENTS: list[tuple[Callable[[Pattern | OpPattern], Pattern | OpPattern], bool]] = [
    (lambda p: p.has_attr({}), True),
    (lambda p: p.has_attr({"no_such": 1}), False),
    (lambda p: p.has_dtype("f32"), True),
    (lambda p: p.has_dtype("f16"), False),
    (lambda p: p.has_shape([4]), True),
    (lambda p: p.has_shape([5]), False),
    (lambda p: p.has_type(VECTOR), True),
    (lambda p: p.has_type(f32), False),
    (lambda p: p.named("root"), True),
    (lambda p: p.optional(is_op("nn.relu")), True),
    (lambda p: p.has_dtype("f32").named("root").has_shape([None]), True),
]


@pytest.mark.parametrize(("refine", "fits"), REFINEMENTS)
def test_ops_have_the_methods_before_and_after_they_are_called(
    refine: Callable[[Pattern | OpPattern], Pattern | OpPattern], fits: bool
) -> None:
    sqrt = next(op for op in roots().block.ops if isinstance(op, SqrtOp))
    before = refine(is_op("sqrt"))
    assert isinstance(before, OpPattern)
    after = refine(is_op("sqrt")(x * x))
    assert isinstance(after, Pattern)
    for pattern in (before(x * x), after):
        match = match_pattern(pattern, sqrt)
        assert (match is not None) == fits
        assert match is None or match.root is sqrt


def test_an_op_that_is_a_child_before_it_is_called() -> None:
    sqrt = next(op for op in roots().block.ops if isinstance(op, SqrtOp))
    dominated = is_op("sqrt").dominates(x * x)
    assert match_pattern(dominated(any_value()), sqrt) is not None


def test_every_method_of_patterns_is_one_of_ops() -> None:
    methods = {
        name for name in vars(Pattern) if callable(getattr(Pattern, name)) and name[0] != "_"
    }
    assert methods <= set(vars(OpPattern))
