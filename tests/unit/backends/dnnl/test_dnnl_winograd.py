"""3x3 convolutions by Winograd's algorithm, taken here wherever it is written."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dnnl_models import check, model, node, scalar
from onnx import ModelProto, NodeProto

import byoc_mlir
from byoc_mlir.backends.dnnl.costs import Costs
from byoc_mlir.testing.reference import random_inputs

_SAME = [1, 1, 1, 1]


def _cheap(*_: object) -> float:
    return -1e3


@pytest.fixture(autouse=True)
def preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the algorithm cheaper than all others, so that no measurement decides."""
    monkeypatch.setattr(Costs, "_by_products", _cheap)


def _convolution(
    source: Sequence[int],
    outputs: int = 16,
    after: Sequence[NodeProto] = (),
    inputs: str = "a w b",
    **attributes: Any,
) -> ModelProto:
    """A 1x1 convolution, a 3x3 one to `y` or to `c`, and what follows that; `r` is a residual."""
    channels, group = source[1], attributes.get("group", 1)
    name = "c" if after else "y"
    nodes = [
        node("Conv", "x v", "a"),
        node("Conv", "x u", "r", pads=[0, 0, 0, 0]),
        node("Conv", inputs, name, kernel_shape=[3, 3], **attributes),
        *after,
    ]
    used = [one for one in nodes if one.output[0] != "r" or any("r" in o.input for o in after)]
    weights: dict[str, Any] = {
        "v": (channels, channels, 1, 1),
        "u": (outputs, channels, 1, 1),
        "w": (outputs, channels // group, 3, 3),
        "b": (outputs,),
        "low": scalar(-4),
        "high": scalar(4),
    }
    read = {one for each in used for one in each.input}
    kept = {key: value for key, value in weights.items() if key in read}
    return model(used, {"x": tuple(source)}, kept)


def _algorithm(built: ModelProto, **options: Any) -> str:
    report = check(built, tolerance=2e-5, **options)
    return next(row.implementation for row in report if row.node in ("Conv_y", "Conv_c"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("source", "outputs", "pads"),
    [
        ((1, 16, 16, 16), 16, _SAME),
        ((1, 8, 13, 18), 24, _SAME),
        ((3, 24, 7, 9), 8, [0, 0, 0, 0]),
        ((2, 16, 10, 15), 16, [0, 1, 1, 0]),
        ((1, 16, 11, 6), 16, [2, 0, 1, 2]),
        ((1, 16, 3, 3), 8, [0, 0, 0, 0]),
    ],
)
def test_sizes_and_padding(
    source: Sequence[int], outputs: int, pads: list[int], threads: int
) -> None:
    built = _convolution(source, outputs, pads=pads)
    assert _algorithm(built, threads=threads) == "winograd:f4x3"


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
    """Its matrices are handled in several blocks of tiles."""
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
