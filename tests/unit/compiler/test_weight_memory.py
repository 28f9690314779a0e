"""`compile(weight_memory=…)`: a limit for the packed weights of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from helpers.models import model_of, node
from measured import write_measured

import byoc_mlir
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import ByocError
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
from byoc_mlir.runtime.program import ObjectCode
from byoc_mlir.runtime.system.cpu import Cpu

CHANNELS = 384
FREE: dict[str, Any] = {"weight_memory": float("inf")}
CALIBRATION = {"products": 1e7, "transformed_bytes": 1e8, "weight_bytes": 1e8}
"""Calibration of a machine on which MACs are so slow that Winograd's algorithms win."""


def _model(channels: int = CHANNELS) -> onnx.ModelProto:
    """Returns two convolutions for which Winograd's algorithms are profitable."""
    rng, kernel = np.random.default_rng(0), (channels, channels, 3, 3)
    weights = {name: rng.standard_normal(kernel).astype(np.float32) / 32 for name in "vw"}
    nodes = [
        node("Conv", "x v", "h", name="first", pads=[1, 1, 1, 1]),
        node("Conv", "h w", "y", name="second", pads=[1, 1, 1, 1]),
    ]
    shape = [1, channels, 28, 28]
    return model_of(nodes, {"x": shape}, weights, {"y": shape}, opset=17)


def _constants(
    folder: Path, targets: tuple[str, ...], channels: int = CHANNELS, **options: Any
) -> tuple[int, np.ndarray[Any, Any]]:
    """Returns the bytes of a program's constants, and its output, by `CALIBRATION`."""
    calibration = folder / "calibration.json"
    write_measured(calibration, convolutions=CALIBRATION)
    data = np.random.default_rng(1).standard_normal((1, channels, 28, 28)).astype(np.float32)
    with byoc_mlir.compile(
        _model(channels),
        targets,
        1,
        fallback="allow",
        cache=False,
        calibration=calibration,
        **options,
    ) as executable:
        code = executable.program.code
        assert isinstance(code, ObjectCode)
        size = sum(array.nbytes for array in code.weights.values())
        return size, executable.run({"x": data})["y"]


@pytest.mark.parametrize("targets", [(), ("dnnl",)])
def test_weights_take_no_more(targets: tuple[str, ...], tmp_path: Path) -> None:
    weights = 2 * 4 * CHANNELS * CHANNELS * 9
    live = 2 * 4 * CHANNELS * 28 * 28
    free, wanted = _constants(tmp_path, targets, **FREE)
    bounded, found = _constants(tmp_path, targets)
    assert bounded <= 2 * weights + live < free
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def _quantised() -> onnx.ModelProto:
    """Returns an int8 convolution that is faster in `f32` without int8 instructions."""
    rng, channels = np.random.default_rng(0), 512
    constants: dict[str, Any] = {
        "x_scale": np.float32(0.02),
        "x_zero": np.uint8(3),
        "w": rng.integers(-127, 128, (channels, channels, 3, 3)).astype(np.int8),
        "w_scale": np.float32(0.001),
        "w_zero": np.int8(0),
        "y_scale": np.float32(0.1),
        "y_zero": np.uint8(128),
    }
    quantised = node("QLinearConv", " ".join(("x", *constants)), pads=[1, 1, 1, 1])
    data = np.zeros((1, channels, 14, 14), np.uint8)
    return model_of([quantised], {"x": data}, constants, opset=17)


def test_weights_of_bytes_count(tmp_path: Path) -> None:
    """Checks that Winograd's `f32` weights count: they take 16 or 28 times as many bytes."""
    calibration, model = tmp_path / "calibration.json", _quantised()
    calibration.write_text('{"version": 2, "measurements": {}}')
    sizes: list[int] = []
    for options in (FREE, {}):
        with byoc_mlir.compile(
            model, ("dnnl",), 1, fallback="allow", cache=False, calibration=calibration, **options
        ) as executable:
            code = executable.program.code
            assert isinstance(code, ObjectCode)
            sizes.append(sum(array.nbytes for array in code.weights.values()))
    free, bounded = sizes
    weights = 512 * 512 * 9
    assert bounded <= weights + (1 << 23)
    assert IntegerUnit.of(Cpu.host().features).has_vnni or free > 16 * weights


def test_small_models_take_what_is_fastest(tmp_path: Path) -> None:
    """Checks weights that take less memory than the process's code, by any algorithm."""
    (free, _), (bounded, _) = (_constants(tmp_path, (), 128, **options) for options in (FREE, {}))
    assert bounded == free > 1.5 * (2 * 4 * 128 * 128 * 9)


@pytest.mark.parametrize("memory", [0.5, float("nan"), "2"])
def test_nonsense_is_refused(memory: Any) -> None:
    with pytest.raises(ByocError, match="weight_memory is"):
        byoc_mlir.compile(_model(), weight_memory=memory)


def test_the_cache_knows_it() -> None:
    one, other = (Request(_model(), weight_memory=memory) for memory in (2.0, 3.0))
    assert one.choices != other.choices
