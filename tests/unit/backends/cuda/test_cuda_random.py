"""Kernels of random shapes against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.cuda.emulation import Record
from helpers.cuda.runs import RegionRun
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byoc_mlir.backends.cuda.rules import RULES
from byoc_mlir.compiler.source import main_function
from byoc_mlir.testing.conformance.accuracy import error_of, expected
from byoc_mlir.testing.conformance.graph import CaseBuilder

_SIZES = st.sampled_from((1, 2, 3, 7, 31, 32, 33, 40, 70))
_SHAPES = st.lists(_SIZES, min_size=1, max_size=4).filter(lambda sizes: math.prod(sizes) < 60_000)
_UNARY = ("abs", "exp", "tanh", "sigmoid", "nn.relu", "erf", "negative")
_BINARY = ("add", "multiply", "maximum", "subtract")
_REDUCTIONS = ("sum", "max", "min", "mean")

few = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def _check(graph: CaseBuilder, results: list) -> None:
    case = graph.case("random", "", results)
    function = main_function(case.module)
    for got, want in zip(
        RegionRun(function).run(list(case.inputs)), expected(function, case.inputs), strict=True
    ):
        assert error_of(got, want) < 1e-5


@few
@given(st.data())
def test_chains_of_elementwise_ops(gpu: Record, data: st.DataObject) -> None:
    shape = tuple(data.draw(_SHAPES, "shape"))
    graph, rng = CaseBuilder(), np.random.default_rng(0)
    values = [graph.input(rng.standard_normal(shape).astype(np.float32))]
    for _ in range(data.draw(st.integers(1, 6), "ops")):
        value = data.draw(st.sampled_from(values), "operand")
        if data.draw(st.booleans(), "is binary"):
            smaller = tuple(size if data.draw(st.booleans()) else 1 for size in shape)
            other = graph.input(rng.standard_normal(smaller).astype(np.float32))
            made = graph.op(data.draw(st.sampled_from(_BINARY)), [value, other])
        else:
            bounded = graph.op("clip", [value], a_min=-3.0, a_max=3.0).results[0]
            made = graph.op(data.draw(st.sampled_from(_UNARY)), [bounded])
        values.append(made.results[0])
    _check(graph, values[-2:])


@few
@given(st.data())
def test_reductions_over_any_axes(gpu: Record, data: st.DataObject) -> None:
    shape = tuple(data.draw(_SHAPES, "shape"))
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1), "axes")
    graph, rng = CaseBuilder(), np.random.default_rng(0)
    value = graph.input(rng.standard_normal(shape).astype(np.float32))
    name = data.draw(st.sampled_from(_REDUCTIONS), "reduction")
    keep = data.draw(st.booleans(), "keepdims")
    reduced = graph.op(name, [value], axis=sorted(axes), keepdims=keep).results[0]
    results = [graph.op("tanh", [reduced]).results[0]]
    if keep:
        results.append(graph.op("subtract", [value, reduced]).results[0])
    _check(graph, results)


@few
@given(st.data())
def test_softmax_and_layer_norm(gpu: Record, data: st.DataObject) -> None:
    shape = tuple(data.draw(_SHAPES, "shape"))
    graph, rng = CaseBuilder(), np.random.default_rng(0)
    value = graph.input(rng.standard_normal(shape).astype(np.float32))
    axis = data.draw(st.integers(0, len(shape) - 1), "axis")
    soft = graph.op("nn.softmax", [value], axis=axis).results[0]
    scale, shift = (
        graph.input(rng.standard_normal(shape[-1:]).astype(np.float32)) for _ in range(2)
    )
    norm = graph.op("nn.layer_norm", [soft, scale, shift], axis=-1, epsilon=1e-3).results[0]
    _check(graph, [soft, norm])


@pytest.mark.parametrize(("rows", "columns"), [(1, 5000), (3, 4097), (2000, 33)])
def test_long_rows_and_many(gpu: Record, rows: int, columns: int) -> None:
    graph, rng = CaseBuilder(), np.random.default_rng(0)
    value = graph.input(rng.standard_normal((rows, columns)).astype(np.float32))
    _check(graph, [graph.op("nn.softmax", [value], axis=-1).results[0]])


def test_powers_with_a_formula(gpu: Record) -> None:
    graph, rng = CaseBuilder(), np.random.default_rng(0)
    value = graph.input(rng.uniform(0.2, 3, (5, 7)).astype(np.float32))
    powers = [
        graph.op("power", [value, graph.constant(np.array(exponent, np.float32))])
        for exponent in (-2, -1, -0.5, 0.5, 2, 3, 4)
    ]
    assert {RULES["power"](power) for power in powers} == {None}
    _check(graph, [power.results[0] for power in powers])
