"""Models that the fuzzer generates: equal for equal numbers, valid, of all ops."""

from __future__ import annotations

from random import Random

import numpy as np
import onnx
import pytest
from byoc_mlir_fuzz.cases import Plan

from byoc_mlir.frontend.stages.split import split_model
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import RECIPES, add_node, importable_ops
from byoc_mlir.testing.samples.onnx_nodes.tensor import DOMAINS, ML, RejectedError
from byoc_mlir.testing.samples.onnx_nodes.values import broadcastable, random_array, random_shape

PLANS = [Plan(5), Plan(5, symbolic=True), Plan(5, mutate=True)]

NOT_MADE = {
    "BitCast",  # no released opset has it
    "CausalConvWithState",
    "CumProd",
    "LinearAttention",
    "SequenceMap",  # the body would have to be of sequences
    "SwiGLU",
    "TfIdfVectorizer",  # its attributes depend on each other
    "Scatter",  # deprecated, and replaced below
    "Upsample",
    "Momentum",
    *("CastMap", "DictVectorizer"),  # their input is none
}
"""Ops that the fuzzer cannot generate in opset 13 to 24."""


@pytest.mark.parametrize("plan", PLANS)
def test_a_number_is_a_case(plan: Plan) -> None:
    for number in range(5):
        one, two = plan.case(number), plan.case(number)
        assert one.model == two.model
        for first, second in zip(one.feeds, two.feeds, strict=True):
            assert first.keys() == second.keys()
            assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_models_pass_the_checker() -> None:
    for number in range(40):
        model = onnx.ModelProto.FromString(Plan(7).case(number).model)
        if all(value.type.tensor_type.HasField("shape") for value in model.graph.output):
            onnx.checker.check_model(model)  # which asks for shapes, though they may be unknown


def test_some_sizes_are_computed() -> None:
    models = (onnx.ModelProto.FromString(Plan(7).case(number).model) for number in range(120))
    stages = [stage for model in models for stage in split_model(model)]
    assert sum(bool(stage.sizes) for stage in stages) >= 3


def test_every_op_is_made() -> None:
    missing = {name for domain, name in importable_ops() if not _made(name, domain)}
    assert missing <= NOT_MADE


def _made(name: str, domain: str) -> bool:
    for number in range(60):
        domains = {**DOMAINS, ML: 3 + number % 3}
        graph = RandomGraph(Random(number), 13 + number % 12, domains=domains)
        if add_node(graph, name, domain) and any(node.op_type == name for node in graph.nodes):
            return True
    return False


def test_recipes_are_of_known_ops() -> None:
    schemas = onnx.defs.get_all_schemas_with_history()
    standard = {(schema.domain, schema.name) for schema in schemas}
    assert set(RECIPES) <= standard | set(importable_ops())


def test_a_rejected_node_leaves_nothing_behind() -> None:
    graph = RandomGraph(Random(1), 17)
    with pytest.raises(RejectedError):
        _add_what_does_not_fit(graph)
    assert [graph.nodes, graph.inputs, graph.initializers, graph.values] == [[], [], [], []]
    assert not graph.maps


def _add_what_does_not_fit(graph: RandomGraph) -> None:
    with graph.attempt():
        x = graph.tensor(np.dtype(np.float32), (2, 3), fresh=True)
        y = graph.tensor(np.dtype(np.float32), (4,), fresh=True)
        graph.emit("Add", [x, y])


def test_shapes_broadcast() -> None:
    rng = Random(3)
    for _ in range(100):
        shape = random_shape(rng)
        assert np.broadcast_shapes(shape, broadcastable(rng, shape)) == shape


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint64, np.bool_])
def test_extreme_arrays_hold_what_is_special(dtype: type) -> None:
    array = random_array(Random(4), np.dtype(dtype), (64,), "limits")
    assert array.dtype == dtype
    if np.issubdtype(dtype, np.floating):
        assert not np.isfinite(array).all()
