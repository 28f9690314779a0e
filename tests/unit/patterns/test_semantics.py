"""Meaning of patterns, one rule at a time, as in `docs/patterns.md`."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import VECTOR, Graph
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import OpResult

from byoc_mlir.dialects.locations import node_location
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.dialects.relay.elementwise import (
    AddOp,
    DivideOp,
    ErfOp,
    ExpOp,
    MaximumOp,
    MinimumOp,
    MultiplyOp,
    SigmoidOp,
    SubtractOp,
    TanhOp,
)
from byoc_mlir.dialects.relay.nn import BatchNormOp, BiasAddOp, DenseOp, ReluOp
from byoc_mlir.dialects.relay.reduce import SoftmaxOp
from byoc_mlir.dialects.relay.transform import ConcatenateOp, SplitOp
from byoc_mlir.dialects.relay.window import Conv2DOp
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns import (
    CompositePattern,
    Match,
    Pattern,
    all_matches,
    dominates,
    explain_match,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match_pattern,
    wildcard,
)
from byoc_mlir.patterns.subjects import same_expression

relu, tanh, exp = is_op("nn.relu"), is_op("tanh"), is_op("exp")


def match_at(pattern: Pattern, value: OpResult) -> Match | None:
    return match_pattern(pattern, value.owner)


def names(match: Match | None) -> list[str]:
    assert match is not None
    return [op.name.removeprefix("relay.") for op in match.ops]


def test_one_pattern_object_stands_for_one_value():  # PL-1
    g = Graph()
    x, y = g.args
    square, product = g(MultiplyOp, x, x), g(MultiplyOp, x, y)
    g.finish(square, product)
    shared = wildcard()
    assert match_at(shared * shared, square)
    assert match_at(shared * shared, product) is None
    assert match_at(wildcard() * wildcard(), square)


def test_names_stand_for_one_value_too():
    g = Graph()
    x, y = g.args
    square, product = g(MultiplyOp, x, x), g(MultiplyOp, x, y)
    g.finish(square, product)
    pattern = wildcard().named("a") * wildcard().named("a")
    assert match_at(pattern, square)
    assert match_at(pattern, product) is None


def test_alternatives_are_tried_again_when_a_sibling_fails():  # PL-2, unlike TVM
    g = Graph()
    x, _ = g.args
    r = g(ReluOp, x)
    out = g(SubtractOp, r, g(TanhOp, x))
    g.finish(out)
    shared = wildcard()
    # The left alternative fits at first, but then `shared` is relu(x) and tanh does not fit.
    either = shared | relu(shared)
    assert names(match_at(is_op("subtract")(either, tanh(shared)), out)) == [
        "nn.relu",
        "tanh",
        "subtract",
    ]


def test_optional_takes_the_longer_form():  # PL-2: TVM's wildcard would never take the option
    g = Graph()
    x, y = g.args
    r = g(ReluOp, g(TanhOp, x))
    out = g(AddOp, r, y)
    g.finish(out)
    pattern = wildcard().named("in").optional(relu) + wildcard().named("other")
    match = match_at(pattern, out)
    assert names(match) == ["nn.relu", "add"]
    assert match is not None
    assert match["in"] is r.owner.operands[0]


@pytest.mark.parametrize(
    ("kind", "commutes"),
    [
        (AddOp, True),
        (MultiplyOp, True),
        (MaximumOp, True),
        (MinimumOp, True),
        (SubtractOp, False),
        (DivideOp, False),
    ],
)
def test_commutativity(kind: type, commutes: bool):  # PL-3
    g = Graph()
    x, y = g.args
    out = g(kind, x, g(TanhOp, y))
    g.finish(out)
    pattern = is_op(kind.name.removeprefix("relay."))(tanh(wildcard()), wildcard())
    assert (match_at(pattern, out) is not None) == commutes


def test_nested_commutativity_finds_the_one_fitting_order():
    g = Graph()
    x, y = g.args
    out = g(AddOp, x, g(MultiplyOp, y, g(AddOp, g(ExpOp, x), g(TanhOp, y))))
    g.finish(out)
    pattern = (tanh(wildcard()) + exp(wildcard())) * wildcard() + wildcard()
    assert match_at(pattern, out)


def test_no_reassociation():  # PL-4: TVM also matches multiply(a, divide(b, c)); we do not
    g = Graph()
    x, y = g.args
    out = g(MultiplyOp, x, g(DivideOp, y, x))
    g.finish(out)
    assert match_at((wildcard() * wildcard()) / wildcard(), out) is None


def diamond(extra_use: bool = False, foreign: bool = False) -> tuple[Graph, OpResult, OpResult]:
    g = Graph()
    x, y = g.args
    top = g(SoftmaxOp, x)
    left = g(ReluOp, g(ReluOp, top))
    right = g(ReluOp, top)
    if foreign:
        right = g(AddOp, right, g(TanhOp, y))
    out = g(AddOp, left, right)
    g.finish(out, *([right] if extra_use else []))
    return g, top, out


def test_dominator():  # PL-5
    softmax = is_op("nn.softmax")(wildcard())
    path, child = relu(wildcard()), wildcard() + wildcard()
    pattern = dominates(softmax, path, child)
    _, top, out = diamond()
    match = match_at(pattern, out)
    assert names(match) == ["nn.softmax", "nn.relu", "nn.relu", "nn.relu", "add"]
    assert match is not None
    assert match.inputs == tuple(top.owner.operands)
    assert match_at(child.dominates(softmax, path), out)
    assert match_at(pattern, diamond(extra_use=True)[2]) is None
    assert match_at(pattern, diamond(foreign=True)[2]) is None
    reason = explain_match(pattern, diamond(foreign=True)[2].owner)
    assert reason is not None
    assert "lies between" in reason


def test_dominator_has_one_parent():  # PL-5
    g = Graph()
    x, y = g.args
    out = g(AddOp, g(ReluOp, g(SoftmaxOp, x)), g(ReluOp, g(SoftmaxOp, y)))
    g.finish(out)
    pattern = dominates(is_op("nn.softmax")(wildcard()), relu(wildcard()), wildcard() + wildcard())
    assert match_at(pattern, out) is None


def test_every_operand_of_a_dominated_op_leads_to_the_parent():  # PL-5, TVM's third case
    softmax = is_op("nn.softmax")(wildcard())
    sum_of_paths = dominates(softmax, relu(wildcard()), wildcard() + wildcard())
    g = Graph()
    x, y = g.args
    top = g(ReluOp, g(SoftmaxOp, x))
    aside, argument = g(AddOp, g(ReluOp, x), top), g(AddOp, y, top)
    g.finish(aside, argument)
    assert match_at(sum_of_paths, aside) is None
    assert match_at(sum_of_paths, argument) is None
    reason = explain_match(sum_of_paths, argument.owner)
    assert reason is not None
    assert "does not lead to nn.softmax" in reason
    g = Graph()
    x, y = g.args
    out = g(AddOp, g(ReluOp, g(SoftmaxOp, x)), y)
    g.finish(out)
    with_input = dominates(softmax, relu(wildcard()), wildcard() + is_var())
    assert match_at(with_input, out) is not None


def test_dominator_skips_arguments_and_constants():  # PL-5
    g = Graph()
    x, y = g.args
    c = g.constant(1, 2, 3, 4)
    top = g(SoftmaxOp, x)
    out = g(AddOp, g(AddOp, top, c), g(MultiplyOp, top, y))
    g.finish(out)
    pattern = dominates(is_op("nn.softmax")(wildcard()), wildcard(), wildcard() + wildcard())
    match = match_at(pattern, out)
    assert match is not None
    assert len(match.ops) == 4
    assert set(match.inputs) == {x, y, c}


def test_parameters_come_in_the_order_of_the_pattern():  # PL-8
    g = Graph(VECTOR, VECTOR, VECTOR)
    x, y, z = g.args
    out = g(AddOp, z, g(SubtractOp, y, x))
    g.finish(out)
    # As written: subtract's operands first, whatever order add has them in.
    match = match_at(is_op("subtract")(wildcard(), wildcard()) + wildcard(), out)
    assert match is not None
    assert match.inputs == (y, x, z)
    turned = match_at(wildcard() + is_op("subtract")(wildcard(), wildcard()), out)
    assert turned is not None
    assert turned.inputs == (z, y, x)


def test_a_value_is_one_parameter():  # PL-8
    g = Graph()
    x, _ = g.args
    out = g(SubtractOp, g(TanhOp, x), x)
    g.finish(out)
    match = match_at(tanh(wildcard()) - wildcard(), out)
    assert match is not None
    assert match.inputs == (x,)


def test_constants_are_embedded_or_passed():  # MC-9
    g = Graph()
    x, _ = g.args
    c = g.constant(2.0)
    out = g(MultiplyOp, x, c)
    g.finish(out)
    embedded = match_at(wildcard() * is_constant(), out)
    assert embedded is not None
    assert (embedded.inputs, embedded.constants) == ((x,), (c,))
    passed = match_at(wildcard() * wildcard(), out)
    assert passed is not None
    assert (passed.inputs, passed.constants) == ((x, c), ())
    exact = match_at(wildcard() * is_expr(2.0), out)
    assert exact is not None
    assert exact.constants == (c,)
    chosen = match_at(wildcard() * (tanh(wildcard()) | is_constant()), out)
    assert chosen is not None
    assert chosen.constants == (c,)
    assert match_at(wildcard() * is_var(), out) is not None  # the other way round: x is a var
    assert match_at(is_var() * is_var(), out) is None


def test_no_interior_value_leaves():  # PL-11
    g = Graph()
    x, _ = g.args
    inner = g(TanhOp, x)
    out = g(ReluOp, inner)
    g.finish(out, inner)
    assert match_at(relu(tanh(wildcard())), out) is None
    reason = explain_match(relu(tanh(wildcard())), out.owner)
    assert reason == "tanh is also used outside of the match, by func.return"


def test_no_interior_value_leaves_even_if_its_users_meet_again():  # PL-11: TVM duplicates the op
    g = Graph()
    x, _ = g.args
    inner = g(TanhOp, x)
    out = g(AddOp, g(ReluOp, inner), g(ExpOp, inner))
    g.finish(out)
    assert match_at(relu(tanh(wildcard())) + wildcard(), out) is None
    whole = tanh(wildcard())
    assert match_at(relu(whole) + exp(whole), out)


def test_a_leaf_comes_from_outside():  # PL-12: TVM cuts relu out of the composite's body
    g = Graph()
    x, _ = g.args
    r = g(ReluOp, x)
    out = g(AddOp, r, r)
    g.finish(out)
    pattern = relu(wildcard()) + wildcard()
    assert match_at(pattern, out) is None
    reason = explain_match(pattern, out.owner)
    assert reason == "nn.relu is part of the match, and an input of it as well"
    shared = relu(wildcard())
    assert names(match_at(shared + shared, out)) == ["nn.relu", "add"]


def test_sum_of_a_biased_value_with_itself_is_no_bias_sum():  # PL-12, the case of TVM's dnnl table
    g = Graph(VECTOR, TensorType(f32, [4, 4]))
    t = g(AddOp, g(DenseOp, *g.args), g.constant(1, 2, 3, 4))
    out = g(AddOp, t, t)
    g.finish(out)
    dense = is_op("nn.dense")(wildcard(), wildcard())
    assert match_at(dense + wildcard() + wildcard(), out) is None
    assert match_at(dense + wildcard(), t)


def test_results_of_an_op_with_several():
    g = Graph()
    x, _ = g.args
    split = g.add(SplitOp(x, sections=[1, 3], axis=0))
    out = g(TanhOp, split.results[1])
    g.finish(out)
    halves = is_op("split")(wildcard())
    assert match_at(tanh(is_tuple_get_item(halves, 1)), out)
    assert match_at(tanh(is_tuple_get_item(halves)), out)
    assert match_at(tanh(is_tuple_get_item(halves, 0)), out) is None
    assert match_at(tanh(halves), out) is None
    assert "say which with is_tuple_get_item" in str(explain_match(tanh(halves), out.owner))
    match = match_at(tanh(is_tuple_get_item(halves, 1)), out)
    assert match is not None
    assert match.origin == "split_TupleGetItem1_tanh_"


def test_an_op_with_several_results_as_root():
    g = Graph()
    x, _ = g.args
    split = g.add(SplitOp(g(TanhOp, x), sections=[1, 3], axis=0))
    g.finish(*split.results)
    whole = match_pattern(is_op("split")(tanh(wildcard())), split)
    assert whole is not None
    assert whole.results == tuple(split.results)
    assert whole.origin == "tanh_split_"
    assert match_pattern(is_tuple_get_item(is_op("split")(wildcard()), 0), split) is None


def test_a_result_used_outside_is_a_leak():
    g = Graph(TensorType(f32, [2, 4]), VECTOR)
    norm = g.add(BatchNormOp(g.args[0], *[g.args[1]] * 4))
    out = g(ReluOp, norm.results[0])
    g.finish(out, norm.results[2])
    statistics = [wildcard() for _ in range(4)]
    pattern = relu(is_tuple_get_item(is_op("nn.batch_norm")(wildcard(), *statistics), 0))
    assert match_at(pattern, out) is None
    assert "result #2 of nn.batch_norm is also used" in str(explain_match(pattern, out.owner))


def test_operands_of_variadic_ops():
    g = Graph()
    x, y = g.args
    out = g(ConcatenateOp, [g(TanhOp, x), y, y])
    g.finish(out)
    concatenate = is_op("concatenate")
    free = match_at(concatenate(None), out)
    assert free is not None
    assert len(free.ops) == 1
    assert len(free.inputs) == 2
    assert match_at(concatenate(is_tuple(None)), out)
    assert match_at(concatenate(tanh(wildcard()), wildcard(), wildcard()), out)
    assert match_at(concatenate(is_tuple([tanh(wildcard()), wildcard(), wildcard()])), out)
    assert match_at(concatenate(wildcard(), wildcard()), out) is None
    assert "2 operands, found 3" in str(
        explain_match(concatenate(wildcard(), wildcard()), out.owner)
    )


def test_any_op():
    g = Graph()
    x, y = g.args
    out = g(AddOp, y, g(TanhOp, x))
    other = g(ReluOp, g(TanhOp, x))
    g.finish(out, other)
    anything = wildcard()(tanh(wildcard()))
    assert match_at(anything, out)
    match = match_at(anything, other)
    assert match is not None
    assert match.origin == "tanh_nn.relu_"
    either = (is_op("add") | is_op("subtract"))(wildcard(), wildcard())
    assert match_at(either, out)


def test_attributes_types_and_shapes():
    g = Graph(TensorType(f32, [2, 4]), VECTOR)
    x, y = g.args
    out = g(BiasAddOp, x, y, axis=1)
    g.finish(out)
    bias_add = is_op("nn.bias_add")(wildcard(), wildcard())
    assert match_at(bias_add.has_attr({"axis": 1}), out)
    assert match_at(bias_add.has_attr({}), out)
    assert match_at(bias_add.has_attr({"axis": 0}), out) is None
    assert match_at(bias_add.has_attr({"no_such": 0}), out) is None
    assert match_at(bias_add.has_dtype("float32"), out)
    assert match_at(bias_add.has_dtype("f32"), out)
    assert match_at(bias_add.has_dtype("float16"), out) is None
    assert match_at(bias_add.has_shape((2, 4)), out)
    assert match_at(bias_add.has_shape((None, 4)), out)
    assert match_at(bias_add.has_shape((4,)), out) is None
    assert match_at(bias_add.has_type(TensorType(f32, [2, 4])), out)
    assert match_at(bias_add.has_type(VECTOR), out) is None
    inner = is_op("nn.bias_add")(has_type(TensorType(f32, [2, 4])), has_shape((4,)))
    assert match_at(inner, out)
    assert match_at(is_op("nn.bias_add")(wildcard(), has_dtype("int8")), out) is None
    reason = explain_match(bias_add.has_attr({"axis": 0}), out.owner)
    assert reason == "expected axis = 0 on nn.bias_add, found 1 : i64"


def test_attributes_as_tvm_writes_them():
    g = Graph(TensorType(f32, [1, 8, 9, 9]), TensorType(f32, [4, 8, 3, 2]))
    window = {"strides": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1]}
    conv = g(Conv2DOp, *g.args, **window)
    out = g(ReluOp, conv)
    g.finish(out)
    called = is_op("nn.conv2d")(wildcard(), wildcard())
    assert match_at(called.has_attr({"kernel_size": [3, 2], "channels": 4}), conv)
    assert match_at(called.has_attr({"kernel_size": [3, 3]}), conv) is None
    assert match_at(is_op("nn.conv2d").has_attr({"TOpPattern": 4})(wildcard(), wildcard()), conv)
    elementwise = wildcard().has_attr({"TOpPattern": 0})(wildcard())
    assert match_at(elementwise, out)
    assert match_at(elementwise, conv) is None


def test_expressions():
    g = Graph()
    x, y = g.args
    one, two = g(TanhOp, x), g(TanhOp, x)
    other = g(TanhOp, y)
    c = g.constant(1, 2, 3, 4)
    outs = [g(ReluOp, value) for value in (one, two, other, c)]
    g.finish(*outs)
    same = relu(is_expr(one))
    assert [match_at(same, out) is not None for out in outs] == [True, True, False, False]
    wanted = relu(is_expr(np.asarray([1, 2, 3, 4], np.float32)))
    assert match_at(wanted, outs[3])
    assert match_at(relu(is_expr(np.asarray([1, 2, 3, 5], np.float32))), outs[3]) is None
    assert match_at(relu(is_expr(1.0)), outs[3]) is None


@pytest.mark.parametrize(
    ("dtype", "content", "expression", "fits"),
    [
        (np.int32, 0, 0.5, False),
        (np.int32, 1, 1.0, True),
        (np.int8, 44, 300, False),
        (np.bool_, True, 2, False),
        (np.bool_, True, 1, True),
        (np.int64, 2**63 - 1, 2.0**63, False),
        (np.int8, 1, 10**30, False),
        (np.float32, 0.1, 0.1, True),
        (np.float32, 0.0, 1e-60, False),
        (np.float16, np.inf, 1e9, False),
        (np.float32, np.nan, np.nan, True),
        (np.float32, [], 7, False),
        (np.float32, [1.0, 2.0], 1.0, False),
    ],
)
def test_constants_are_compared_without_wrapping(
    dtype: type, content: object, expression: float, *, fits: bool
):
    g = Graph()
    constant = g.add(ConstantOp.of("c", np.asarray(content, dtype))).results[0]
    assert same_expression(expression, constant) == fits


def test_values_of_constants_are_seen():  # TVM accepts x * (erf(x / 7) + 3) * 0.1 as gelu
    def gelu(divisor: float, one: float, half: float) -> OpResult:
        g = Graph()
        x, _ = g.args
        erf = g(ErfOp, g(DivideOp, x, g.constant(divisor)))
        out = g(MultiplyOp, g(MultiplyOp, x, g(AddOp, erf, g.constant(one))), g.constant(half))
        g.finish(out)
        return out

    x = wildcard()
    erf = is_op("erf")(x / is_expr(np.sqrt(2.0)))
    pattern = x * (erf + is_expr(1.0)) * is_expr(0.5)
    assert match_at(pattern, gelu(2**0.5, 1.0, 0.5))
    assert match_at(pattern, gelu(7.0, 3.0, 0.1)) is None


def test_arguments_by_name():
    g = Graph()
    x, y = g.args
    x.name_hint = "data"
    out, other = g(ReluOp, x), g(ReluOp, g(TanhOp, y))
    g.finish(out, other)
    assert match_at(relu(is_var()), out)
    assert match_at(relu(is_var("data")), out)
    assert match_at(relu(is_var("weight")), out) is None
    assert match_at(relu(is_var()), other) is None


def test_what_a_check_sees():
    g = Graph(VECTOR, TensorType(f32, [4, 4]))
    x, w = g.args
    product = g(DenseOp, x, w)
    bias = g.constant(1, 2, 3, 4)
    out = g(AddOp, bias, product)
    g.finish(out)
    dense = is_op("nn.dense")(wildcard(), wildcard().named("weight")).named("dense")
    pattern = (dense + wildcard().named("bias")).optional(
        lambda biased: biased - wildcard().named("zero")
    )
    match = match_at(pattern, out)
    assert match is not None
    assert match["weight"] is w
    assert match["bias"] is bias  # by name, whichever side it stands on
    assert match.constant("bias") is bias.owner
    assert match.constant("weight") is None
    assert match.op("dense") is product.owner
    assert match[dense] is product
    assert "zero" not in match
    assert match.get("zero") is None
    with pytest.raises(KeyError):
        match["zero"]
    with pytest.raises(KeyError, match="matched an argument"):
        match.op("weight")


def test_all_ways_are_offered_once():
    g = Graph()
    x, y = g.args
    out = g(AddOp, x, y)
    g.finish(out)
    named = list(all_matches(wildcard().named("a") + wildcard().named("b"), out.owner))
    assert [(match["a"], match["b"]) for match in named] == [(x, y), (y, x)]
    shared = wildcard()
    assert len(list(all_matches(shared + wildcard(), out.owner))) == 2
    assert len(list(all_matches(is_op("add")(None), out.owner))) == 1


def test_explanations_name_the_first_edge_that_does_not_fit():
    g = Graph()
    x, y = g.args
    inner = g(TanhOp, x)
    inner.owner.location = node_location("Tanh_7")
    out = g(ReluOp, g(AddOp, inner, y))
    g.finish(out)
    assert explain_match(relu(tanh(wildcard()) + wildcard()), out.owner) is None
    assert explain_match(exp(wildcard()), out.owner) == "expected exp, found nn.relu"
    assert (
        explain_match(relu(exp(wildcard()) + is_constant()), out.owner)
        == "expected exp, found tanh (Tanh_7)"
    )
    assert (
        explain_match(relu(tanh(wildcard()) + is_constant()), out.owner)
        == "expected a constant, found argument %1"
    )
    assert explain_match(wildcard(), out.owner) == "the pattern * describes no op"


def test_ill_formed_patterns_are_refused():
    with pytest.raises(BackendError, match="is one once it is called"):
        relu(is_op("tanh"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(BackendError, match="only as all operands"):
        is_op("add")(None, wildcard())
    with pytest.raises(BackendError, match="only as all operands"):
        is_op("add")(is_tuple([wildcard()]), wildcard())


def test_a_long_chain_of_options_is_fast():
    g = Graph()
    value = g(TanhOp, g.args[0])
    for _ in range(60):
        value = g(AddOp, g(MultiplyOp, value, g.args[1]), g.args[1])
    g.finish(value)
    pattern: Pattern = tanh(wildcard())
    for _ in range(60):
        pattern = pattern.optional(lambda p: wildcard() * p).optional(lambda p: wildcard() + p)
    match = match_at(pattern, value)
    assert match is not None
    assert len(match.ops) == 121


def test_swish_reads():
    g = Graph()
    x, _ = g.args
    out = g(MultiplyOp, g(SigmoidOp, x), x)
    g.finish(out)
    data = wildcard().named("data")
    row = CompositePattern("npu.swish", data * is_op("sigmoid")(data))
    match = match_at(row.pattern, out)
    assert match is not None
    assert match.inputs == (x,)
