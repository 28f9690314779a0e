"""3x3 convolutions by Winograd's algorithm, taken here wherever it is written."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dnnl_models import check, convolution, node
from onnx import ModelProto, NodeProto

import byoc_mlir
from byoc_mlir.backends.dnnl.costs import Costs
from byoc_mlir.backends.dnnl.winograd import ALGORITHMS, Algorithm, Winograd
from byoc_mlir.testing.reference import random_inputs

_SAME = [1, 1, 1, 1]


@pytest.fixture(autouse=True)
def preferred(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """An algorithm that is cheaper than all others, so that no measurement decides."""
    name = getattr(request, "param", "f4x3")

    def cost(costs: Costs, winograd: Winograd, direct: float) -> float:
        return -1e3 if winograd.algorithm.name == name else 1e3

    monkeypatch.setattr(Costs, "_by_products", cost)
    return f"winograd:{name}"


_EACH = pytest.mark.parametrize("preferred", ["f2x3", "f4x3", "f6x3"], indirect=True)


def _convolution(
    source: Sequence[int],
    outputs: int = 16,
    after: Sequence[NodeProto] = (),
    inputs: str = "a w b",
    **attributes: Any,
) -> ModelProto:
    return convolution(source, outputs, (3, 3), after, inputs, **attributes)


def _algorithm(built: ModelProto, **options: Any) -> str:
    report = check(built, tolerance=5e-5, **options)
    return next(row.implementation for row in report if row.node in ("Conv_y", "Conv_c"))


@_EACH
@pytest.mark.parametrize(
    ("source", "outputs", "pads", "threads"),
    [
        ((1, 16, 16, 16), 16, _SAME, 2),
        ((1, 8, 13, 18), 24, _SAME, 1),
        ((3, 24, 7, 9), 8, [0, 0, 0, 0], 2),
        ((2, 16, 10, 15), 16, [0, 1, 1, 0], 1),
        ((1, 16, 11, 6), 16, [2, 0, 1, 2], 2),
        ((1, 16, 3, 3), 8, [0, 0, 0, 0], 2),
        ((1, 8, 66, 61), 32, _SAME, 1),
    ],
)
def test_sizes_and_padding(
    source: Sequence[int], outputs: int, pads: list[int], threads: int, preferred: str
) -> None:
    built = _convolution(source, outputs, pads=pads)
    assert _algorithm(built, threads=threads) == preferred


@pytest.mark.parametrize(
    ("inputs", "after"),
    [
        ("a w", []),
        ("a w b", [node("Relu", "c")]),
        ("a w", [node("Clip", "c low high")]),
        ("a w b", [node("Add", "c r")]),
        ("a w b", [node("Add", "c r", "s"), node("Relu", "s")]),
        ("a w", [node("Add", "c r", "s"), node("Clip", "s low high")]),
        ("a w", [node("Add", "c r", "s"), node("Mul", "s r")]),
        ("a w b", [node("Add", "c x", "s"), node("Relu", "s")]),
    ],
    ids=["no-bias", "relu", "clip", "sum", "sum-relu", "sum-clip", "sum-read-again", "input"],
)
def test_post_ops(inputs: str, after: list[NodeProto]) -> None:
    built = _convolution((2, 16, 9, 14), 16, after, inputs, pads=_SAME)
    assert _algorithm(built) == "winograd:f4x3"


@_EACH
def test_a_sum_at_the_edge(preferred: str) -> None:
    after = [node("Add", "c r", "s"), node("Clip", "s low high")]
    assert _algorithm(_convolution((1, 24, 17, 13), 40, after, pads=_SAME)) == preferred


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda one: one.name)
def test_the_transform_of_weights(algorithm: Algorithm) -> None:
    """Against the definition: a window's polynomial at each point, divided by what the product of
    the point's differences to the others is."""
    finite = [0.0, *(sign * point for point in algorithm.points for sign in (1, -1))]
    window = np.array([0.5, -2.0, 3.0])
    expected = [
        np.polynomial.polynomial.polyval(one, window)
        / np.prod([one - other for other in finite if other != one])
        for one in finite
    ]
    found = algorithm.weight_transform() @ window
    np.testing.assert_allclose(found, [*expected, window[-1]], rtol=1e-12)


@pytest.mark.parametrize(
    "built",
    [
        _convolution((1, 16, 12, 12), pads=_SAME, strides=[2, 2]),
        _convolution((1, 16, 12, 12), pads=[2, 2, 2, 2], dilations=[2, 2]),
        _convolution((1, 16, 12, 12), pads=_SAME, group=2),
        _convolution((1, 12, 12, 12), pads=_SAME),
        _convolution((1, 16, 12, 12), 20, pads=_SAME),
        _convolution((1, 16, 12, 12), 16, [node("Sigmoid", "c")], pads=_SAME),
    ],
    ids=["stride", "dilation", "group", "inputs", "outputs", "sigmoid"],
)
def test_what_it_is_not_written_for(built: ModelProto) -> None:
    assert "winograd" not in _algorithm(built)


def test_it_can_be_turned_off() -> None:
    built = _convolution((1, 16, 12, 12), pads=_SAME)
    assert "winograd" not in _algorithm(built, backend_options={"dnnl": {"winograd": "off"}})


def _large() -> ModelProto:
    """Each thread has several blocks of tiles of its own."""
    return _convolution((2, 64, 66, 61), 64, [node("Relu", "c")], pads=_SAME)


def test_eight_threads_get_the_same_bits() -> None:
    built = _large()
    assert _algorithm(built) == "winograd:f4x3"
    inputs = [random_inputs(built, seed=seed) for seed in range(8)]
    for threads in (1, 2):
        with (
            byoc_mlir.compile(built, targets=("dnnl",), threads=threads) as executable,
            ThreadPoolExecutor(8) as pool,
        ):
            expected = [executable.run(one)["y"] for one in inputs]
            for answer, wanted in zip(pool.map(executable.run, inputs), expected, strict=True):
                np.testing.assert_array_equal(answer["y"], wanted)


def test_nan_goes_through_a_relu() -> None:
    built = _convolution((1, 16, 12, 12), 16, [node("Relu", "c")], pads=_SAME)
    inputs = random_inputs(built)
    inputs["x"][0, :, 0, 0] = np.nan
    with byoc_mlir.compile(built, targets=("dnnl",)) as executable:
        result = executable.run(inputs)["y"]
    assert np.isnan(result[0, :, 0, 0]).all()
    assert not np.isnan(result[0, :, 8:, 8:]).any()


def test_an_exported_library_has_it(tmp_path: Path) -> None:
    built = _large()
    inputs = random_inputs(built)
    with byoc_mlir.compile(built, targets=("dnnl",)) as executable:
        expected = executable.run(inputs)["y"]
        executable.export_library(tmp_path / "model.so")
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        np.testing.assert_array_equal(loaded.run(inputs)["y"], expected)
