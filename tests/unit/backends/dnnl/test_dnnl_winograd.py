"""3x3 convolutions by Winograd's algorithm, requested here wherever it is written."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dnnl_models import OWN_LAYOUTS, check, convolution, node
from onnx import ModelProto, NodeProto

import byoc_mlir
from byoc_mlir.kernels.winograd.algorithm import ALGORITHMS, Algorithm
from byoc_mlir.testing.reference import random_inputs

_SAME = [1, 1, 1, 1]


_NAMES = [f"f{step}x3" for step in (2, 4, 6)]
_EACH = pytest.mark.parametrize("name", _NAMES)


def _convolution(
    source: Sequence[int],
    outputs: int = 16,
    after: Sequence[NodeProto] = (),
    inputs: str = "a w b",
    **attributes: Any,
) -> ModelProto:
    return convolution(source, outputs, (3, 3), after, inputs, **attributes)


def _target(name: str = "f4x3", layout: str = "channels_last") -> str:
    """Returns a target in which everything is decided, so that no measurement counts."""
    return f"dnnl{{convolution={name} layout={layout}}}"


def _algorithm(built: ModelProto, target: str, **options: Any) -> str:
    report = check(built, tolerance=5e-5, target=target, **options)
    return next(row.implementation for row in report if row.node in ("Conv_y", "Conv_c"))


@pytest.mark.values
@_EACH
@pytest.mark.parametrize("layout", OWN_LAYOUTS)
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
    source: Sequence[int], outputs: int, pads: list[int], threads: int, name: str, layout: str
) -> None:
    built = _convolution(source, outputs, pads=pads)
    found = _algorithm(built, _target(name, layout), threads=threads)
    assert found == f"winograd:{name}"


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
    assert _algorithm(built, _target()) == "winograd:f4x3"


@_EACH
@pytest.mark.parametrize("first", ["with", "without"])
def test_one_function_serves_convolutions_with_and_without_a_sum(name: str, first: str) -> None:
    sums = [node("Add", "c r", "s"), node("Conv", "s w", pads=_SAME)]
    plain = [node("Conv", "c w", "s", pads=_SAME), node("Add", "s r")]
    after = sums if first == "with" else plain
    built = _convolution((1, 16, 12, 12), 16, after, "a w", pads=_SAME)
    assert _algorithm(built, _target(name)) == f"winograd:{name}"


@_EACH
def test_a_sum_at_the_edge(name: str) -> None:
    after = [node("Add", "c r", "s"), node("Clip", "s low high")]
    built = _convolution((1, 24, 17, 13), 40, after, pads=_SAME)
    assert _algorithm(built, _target(name)) == f"winograd:{name}"


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=lambda one: one.name)
def test_the_transform_of_weights(algorithm: Algorithm) -> None:
    """Checks the definition: a window's polynomial at each point, divided by the product of the
    point's differences to the others.
    """
    finite = [0.0, *(sign * point for point in algorithm.points for sign in (1, -1))]
    window = np.array([0.5, -2.0, 3.0, -1.5, 0.25])[: algorithm.window]
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
        _convolution((1, 10, 12, 12), pads=_SAME),
        _convolution((1, 16, 12, 12), 18, pads=_SAME),
        _convolution((1, 16, 12, 12), 16, [node("Sigmoid", "c")], pads=_SAME),
    ],
    ids=["stride", "dilation", "group", "inputs", "outputs", "sigmoid"],
)
def test_what_it_is_not_written_for(built: ModelProto) -> None:
    assert "winograd:f" not in _algorithm(built, _target())


def test_it_can_be_turned_off() -> None:
    assert "winograd" not in _algorithm(_large(), "dnnl{winograd=off}")


def _large() -> ModelProto:
    """Returns a convolution in which each thread has several blocks of tiles."""
    return _convolution((2, 64, 66, 61), 64, [node("Relu", "c")], pads=_SAME)


def test_eight_threads_get_the_same_bits() -> None:
    built = _large()
    assert _algorithm(built, _target()) == "winograd:f4x3"
    inputs = [random_inputs(built, seed=seed) for seed in range(8)]
    for threads in (1, 2):
        with (
            byoc_mlir.compile(built, targets=(_target(),), threads=threads) as executable,
            ThreadPoolExecutor(8) as pool,
        ):
            expected = [executable.run(one)["y"] for one in inputs]
            for answer, wanted in zip(pool.map(executable.run, inputs), expected, strict=True):
                np.testing.assert_array_equal(answer["y"], wanted)


def test_nan_goes_through_a_relu() -> None:
    built = _convolution((1, 16, 12, 12), 16, [node("Relu", "c")], pads=_SAME)
    inputs = random_inputs(built)
    inputs["x"][0, :, 0, 0] = np.nan
    with byoc_mlir.compile(built, targets=(_target(),)) as executable:
        result = executable.run(inputs)["y"]
    assert np.isnan(result[0, :, 0, 0]).all()
    assert not np.isnan(result[0, :, 8:, 8:]).any()


def test_an_exported_library_has_it(tmp_path: Path) -> None:
    built = _large()
    inputs = random_inputs(built)
    with byoc_mlir.compile(built, targets=(_target(),)) as executable:
        expected = executable.run(inputs)["y"]
        executable.export_library(tmp_path / "model.so")
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        np.testing.assert_array_equal(loaded.run(inputs)["y"], expected)
