"""`compile(exact=…, samples=…)`: the matmuls that stay in `f32`, and their choice by samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.compiler.sampled_precision import ERROR, Products, chosen, worst_error
from byoc_mlir.errors import ByocError
from byoc_mlir.onednn.engine import engine
from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.reference import random_inputs


def _chosen(errors: dict[str, float], accepted: float, most_runs: int) -> tuple[Products, int]:
    """Returns the matmuls kept in f32, given each one's error, and the number of runs; squares of
    errors add up.
    """
    runs = 0

    def error_of(group: Products) -> float:
        nonlocal runs
        runs += 1
        return math.hypot(*(errors[name] for name in group))

    names = tuple(errors)
    kept = chosen(names, math.hypot(*errors.values()), error_of, accepted, most_runs)
    return kept, runs


def test_nothing_is_kept_where_all_together_are_accepted() -> None:
    assert _chosen({"a": 0.1, "b": 0.1}, 1.0, 24) == ((), 0)


@pytest.mark.parametrize("place", [0, 13, 37])
def test_the_one_that_hurts_is_kept(place: int) -> None:
    errors = {f"n{index}": 0.01 for index in range(38)} | {f"n{place}": 5.0}
    kept, runs = _chosen(errors, 0.1, 24)
    assert kept == (f"n{place}",)
    assert runs <= 14


def test_few_of_many_that_add_as_much_are_taken() -> None:
    errors = {f"n{index}": 1.0 for index in range(32)}
    kept, _ = _chosen(errors, 4.0, 24)
    assert len(kept) == 16


@pytest.mark.parametrize("most_runs", [0, 2, 6, 24])
def test_what_is_not_kept_is_accepted(most_runs: int) -> None:
    rng = np.random.default_rng(0)
    errors = {f"n{index}": float(error) for index, error in enumerate(rng.exponential(size=30))}
    kept, runs = _chosen(errors, 1.0, most_runs)
    assert math.hypot(*(error for name, error in errors.items() if name not in kept)) <= 1.0
    assert runs <= most_runs + 30


def test_the_error_of_the_worst_output() -> None:
    wanted = [{"y": np.array([3.0, 4.0]), "n": np.array([1, 2])}]
    found = [{"y": np.array([3.0, 4.05]), "n": np.array([1, 2])}]
    assert worst_error(found, wanted) == pytest.approx(0.01)
    found = [{"y": np.array([3.0, 4.05]), "n": np.array([1, 3])}]
    assert worst_error(found, wanted) == pytest.approx(math.sqrt(0.5))
    missing = [{"y": np.array([3.0, np.nan]), "n": np.array([1, 2])}]
    assert worst_error(missing, wanted) == math.inf


def _model() -> ModelProto:
    """Returns two convolutions; the second adds much to the first's error."""
    net = GraphBuilder("net", seed=0)
    x = net.relu(net.conv(net.input("x", [1, 16, 24, 24]), 16, 1))
    net.output(net.conv(x, 16, 1), "y", [1, 16, 24, 24])
    return net.build()


def _compiled(**options: Any) -> byoc_mlir.Executable:
    targets = ("dnnl{winograd=off}",)
    return byoc_mlir.compile(_model(), targets, 1, "bf16", cache=False, **options)


def test_a_node_stays_in_f32() -> None:
    with _compiled(exact=["/Conv_1"]) as executable:
        rows = {row.node: row.precision for row in executable.report()}
    if engine().has_bf16:
        assert rows["/Conv"] == "bf16"
        assert rows["/Conv_1"] == "f32: asked for"


def test_samples_keep_outputs_close_to_f32() -> None:
    samples = [random_inputs(_model(), seed) for seed in range(2)]
    with _compiled(samples=samples) as executable:
        found = [executable.run(sample) for sample in samples]
    with byoc_mlir.compile(_model(), ("dnnl",), 1) as executable:
        wanted = [executable.run(sample) for sample in samples]
    assert worst_error(found, wanted) <= ERROR


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": []}, "samples are none"),
        ({"samples": [3]}, "samples is 3"),
        ({"samples": {"x": 3}}, "samples is"),
        ({"exact": "/Conv"}, "exact is '/Conv'"),
    ],
)
def test_nonsense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ByocError, match=message):
        _compiled(**options)


def test_samples_without_rounding_are_refused() -> None:
    with pytest.raises(ByocError, match="in which nothing is rounded"):
        byoc_mlir.compile(_model(), ("dnnl",), 1, samples=[random_inputs(_model())])
