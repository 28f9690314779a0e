"""Convolutions as implicit GEMM, requested here wherever they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dnnl_models import OWN_LAYOUTS, check, convolution, node
from onnx import ModelProto, NodeProto

import byoc_mlir
from byoc_mlir.backends.dnnl.costs import costs
from byoc_mlir.testing.reference import random_inputs

_EACH_LAYOUT = pytest.mark.parametrize("layout", OWN_LAYOUTS)


def _target(layout: str = "channels_last", algorithm: str = "implicit_gemm") -> str:
    """Returns a target in which everything is decided, so that no measurement counts."""
    return f"dnnl{{winograd=off convolution={algorithm} layout={layout}}}"


def _algorithm(built: ModelProto, target: str, **options: Any) -> str:
    report = check(built, target=target, **options)
    return next(row.implementation for row in report if row.node in ("Conv_y", "Conv_c"))


@pytest.mark.values
@_EACH_LAYOUT
@pytest.mark.parametrize(
    ("source", "outputs", "strides", "threads"),
    [
        ((1, 16, 7, 7), 32, [1, 1], 2),
        ((2, 8, 13, 11), 24, [1, 1], 1),
        ((3, 24, 5, 9), 8, [1, 1], 2),
        ((1, 40, 1, 2), 16, [1, 1], 2),
        ((1, 8, 37, 41), 16, [1, 1], 2),
        ((2, 16, 14, 15), 40, [2, 2], 2),
        ((1, 24, 9, 31), 16, [1, 3], 1),
    ],
)
def test_products_of_pixels(
    source: Sequence[int], outputs: int, strides: list[int], threads: int, layout: str
) -> None:
    built = convolution(source, outputs, (1, 1), strides=strides)
    assert _algorithm(built, _target(layout), threads=threads) == "implicit_gemm"


@pytest.mark.parametrize(
    ("source", "window", "attributes"),
    [
        ((1, 16, 14, 14), (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ((2, 8, 11, 17), (3, 3), {"pads": [0, 1, 2, 0]}),
        ((1, 24, 9, 9), (1, 7), {"pads": [0, 3, 0, 3]}),
        ((3, 8, 12, 10), (5, 5), {"strides": [2, 3]}),
        ((1, 16, 15, 13), (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
        ((1, 8, 4, 4), (3, 2), {"pads": [2, 1, 2, 1], "strides": [1, 2], "dilations": [1, 3]}),
        ((1, 16, 2, 2), (7, 7), {"pads": [3, 3, 3, 3]}),
        ((1, 8, 9, 1), (3, 1), {"pads": [1, 0, 1, 0], "strides": [2, 1]}),
    ],
)
def test_windows(source: Sequence[int], window: Sequence[int], attributes: dict[str, Any]) -> None:
    built = convolution(source, 24, window, **attributes)
    assert _algorithm(built, _target(), threads=2) == "implicit_gemm"


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
    ],
    ids=["no-bias", "relu", "clip", "sum", "sum-relu", "sum-clip", "sum-read-again"],
)
def test_post_ops(inputs: str, after: list[NodeProto]) -> None:
    built = convolution((2, 16, 9, 14), 24, (1, 1), after, inputs)
    assert _algorithm(built, _target()) == "implicit_gemm"


def test_a_sum_in_blocks_of_channels() -> None:
    after = [node("Add", "c r", "s"), node("Relu", "s")]
    built = convolution((1, 16, 9, 14), 24, (1, 1), after)
    assert _algorithm(built, _target(OWN_LAYOUTS[-1])) == "implicit_gemm"


@pytest.mark.parametrize(
    "built",
    [
        convolution((1, 16, 7, 7), 16, (1, 1), group=2),
        convolution((1, 10, 7, 7), 16, (1, 1)),
        convolution((1, 16, 7, 7), 18, (1, 1)),
        convolution((1, 16, 7, 7), 16, (1, 1), [node("Sigmoid", "c")]),
    ],
    ids=["group", "inputs", "outputs", "sigmoid"],
)
def test_what_it_is_not_written_for(built: ModelProto) -> None:
    assert _algorithm(built, _target()) != "implicit_gemm"


def test_padding_needs_channels_last() -> None:
    built = convolution((1, 16, 14, 14), 16, (3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    assert _algorithm(built, _target("blocked_8")) != "implicit_gemm"


@pytest.mark.parametrize(("milliseconds", "is_ours"), [(1e6, True), (1e-6, False)])
def test_it_is_taken_where_it_is_estimated_to_gain(
    monkeypatch: pytest.MonkeyPatch, milliseconds: float, is_ours: bool
) -> None:
    """Checks the choice by the estimate of the library's algorithm."""
    monkeypatch.setattr(costs, "estimated_milliseconds", lambda *_: milliseconds)
    built = convolution((1, 256, 28, 28), 64, (1, 1))
    assert (_algorithm(built, _target(algorithm="measured")) == "implicit_gemm") == is_ours


def test_eight_threads_get_the_same_bits() -> None:
    built = convolution((2, 64, 30, 30), 64, (3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
    assert _algorithm(built, _target()) == "implicit_gemm"
    inputs = [random_inputs(built, seed=seed) for seed in range(8)]
    answers: list[list[np.ndarray]] = []
    for threads in (1, 2):
        with (
            byoc_mlir.compile(built, targets=(_target(),), threads=threads) as executable,
            ThreadPoolExecutor(8) as pool,
        ):
            run: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] = executable.run
            answers.append([answer["y"] for answer in pool.map(run, inputs)])
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


def test_nan_goes_through_limits() -> None:
    for after in ([node("Relu", "c")], [node("Clip", "c low high")]):
        built = convolution((1, 16, 12, 12), 16, (1, 1), after)
        inputs = random_inputs(built)
        inputs["x"][0, :, 0, 0] = np.nan
        with byoc_mlir.compile(built, targets=(_target(),)) as executable:
            rows = {row.node: row.implementation for row in executable.report()}
            assert rows["Conv_c"] == "implicit_gemm"
            result = executable.run(inputs)["y"]
        assert np.isnan(result[0, :, 0, 0]).all()
        assert not np.isnan(result[0, :, 1:, 1:]).any()


def test_an_exported_library_has_it(tmp_path: Path) -> None:
    built = convolution((1, 64, 14, 14), 64, (1, 1))
    inputs = random_inputs(built)
    with byoc_mlir.compile(built, targets=(_target(),)) as executable:
        expected = executable.run(inputs)["y"]
        executable.export_library(tmp_path / "model.so")
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        np.testing.assert_array_equal(loaded.run(inputs)["y"], expected)
