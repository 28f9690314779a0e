"""Quantised ops of ONNX: types, granularity, zero points, ends of ranges."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from nodes import node_model
from onnx import parser
from quantised_checks import (
    bytes_of,
    check_quantised,
    f32,
    run_passes,
    scales,
    small_bytes_of,
)

import byoc_mlir
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.testing.reference import run_onnxruntime

U8, I8 = np.uint8, np.int8
F32 = np.float32
TYPES = [(U8, U8), (U8, I8), (I8, I8)]


@pytest.mark.parametrize(("of_data", "of_weight"), TYPES)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_qlinear_conv(of_data: Any, of_weight: Any, per_channel: bool, symmetric: bool) -> None:
    rng = np.random.default_rng(1)
    zero = bytes_of(rng, of_weight, 6) if per_channel else bytes_of(rng, of_weight, 1)[0]
    if symmetric or of_weight is I8:  # ONNX Runtime's kernels have no other zero points for i8
        zero = np.zeros_like(zero)
    inputs = {
        "x": bytes_of(rng, of_data, 2, 4, 7, 6),
        "xs": f32(0.02),
        "xz": of_data(9),
        "w": bytes_of(rng, of_weight, 6, 2, 3, 3),
        "ws": scales(rng, 6) if per_channel else f32(0.03),
        "wz": zero,
        "ys": f32(0.4),
        "yz": of_data(20),
        "b": rng.integers(-5000, 5000, 6).astype(np.int32),
    }
    check_quantised(
        "QLinearConv",
        inputs,
        {"y": of_data},
        constants=("xs", "xz", "w", "ws", "wz", "ys", "yz", "b"),
        domain="",
        group=2,
        pads=[1, 0, 1, 2],
        strides=[2, 1],
    )


@pytest.mark.parametrize(("of_a", "of_b"), TYPES)
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_qlinear_matmul(of_a: Any, of_b: Any, per_column: bool, known: bool) -> None:
    rng = np.random.default_rng(2)
    inputs = {
        "a": bytes_of(rng, of_a, 3, 5, 40),
        "as": f32(0.02),
        "az": of_a(100),
        "b": (bytes_of if known else small_bytes_of)(rng, of_b, 40, 7),
        "bs": scales(rng, 7) if per_column else f32(0.01),
        "bz": bytes_of(rng, of_b, 7) if per_column else of_b(3),
        "ys": f32(0.2),
        "yz": of_a(17),
    }
    constants = ("as", "az", "b", "bs", "bz", "ys", "yz") if known else ()
    check_quantised("QLinearMatMul", inputs, {"y": of_a}, constants=constants, domain="")


@pytest.mark.parametrize(("of_a", "of_b"), TYPES)
def test_matmul_integer(of_a: Any, of_b: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = bytes_of(rng, of_a, 2, 3, 300), small_bytes_of(rng, of_b, 300, 5)
    for shift in (of_b(7), bytes_of(rng, of_b, 5)):
        inputs = {"a": a, "b": b, "az": of_a(99), "bz": shift}
        check_quantised("MatMulInteger", inputs, {"y": np.int32}, domain="")
    check_quantised("MatMulInteger", {"a": a, "b": b}, {"y": np.int32}, domain="")


def test_conv_integer() -> None:
    rng = np.random.default_rng(4)
    inputs = {
        "x": bytes_of(rng, U8, 1, 3, 6, 6),
        "w": bytes_of(rng, U8, 4, 3, 3, 3),
        "xz": U8(77),
        "wz": U8(130),
    }
    check_quantised(
        "ConvInteger", inputs, {"y": np.int32}, constants=("w", "xz", "wz"), domain="", pads=[1] * 4
    )


def test_dynamic_quantisation_covers_the_whole_tensor() -> None:
    rng = np.random.default_rng(5)
    for data in (
        rng.standard_normal((3, 50)) * 10,
        rng.random((3, 50)) + 5,
        -rng.random((3, 50)),
        np.zeros((2, 3)),
    ):
        check_quantised(
            "DynamicQuantizeLinear",
            {"x": data.astype(np.float32)},
            {"y": U8, "s": F32, "z": U8},
            domain="",
            step=1e-6,
        )


@pytest.mark.parametrize(
    ("of_scale", "of_zero", "shape"),
    list(itertools.product([F32], [U8, I8, np.uint16, np.int16], [(), (6,)])),
)
def test_quantize_and_dequantize(of_scale: Any, of_zero: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(14)
    data = (rng.standard_normal((3, 6, 4)) * 20).astype(np.float32)
    data.reshape(-1)[:6] = [-np.inf, np.inf, 1e30, -1e30, 0.0, -0.0]
    scale = (rng.random(shape) + 0.01).astype(of_scale)
    zero = np.full(shape, 11, of_zero)
    inputs = {"x": data, "s": scale, "z": zero}
    check_quantised("QuantizeLinear", inputs, {"y": of_zero}, axis=1)
    inputs = {"x": bytes_of(rng, of_zero, 3, 6, 4), "s": scale, "z": zero}
    check_quantised("DequantizeLinear", inputs, {"y": F32}, axis=1, step=1e-6)


@pytest.mark.parametrize(
    ("scale", "zero", "message"),
    [
        (f32(0), U8(0), "scale has 0.0, accepted are finite numbers above 0"),
        (f32(-1), U8(0), "scale has -1.0, accepted are finite numbers above 0"),
        (f32(np.inf), U8(0), "scale has inf, accepted are finite numbers above 0"),
        (f32(np.nan), U8(0), "scale has nan, accepted are finite numbers above 0"),
        (f32(1), I8(0), "input 'x_zero_point' is tensor(int8), accepted is tensor(uint8)"),
        (
            np.ones(3, F32),
            np.zeros(3, U8),
            "relay.qnn.dequantize: scale must be tensor<f32> or tensor<4xf32>",
        ),
    ],
)
def test_wrong_parameters_are_refused(scale: Any, zero: Any, message: str) -> None:
    inputs = {"x": np.zeros((2, 4), U8), "s": scale, "z": zero}
    model = node_model("DequantizeLinear", inputs, {"y": F32}, constants=("s", "z"), domain="")
    with pytest.raises(InvalidModelError) as caught:
        byoc_mlir.compile(model)
    assert f"node 'n' (DequantizeLinear): {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("blocks", "block_size", "message"),
    [
        (2, 3, "scale must be tensor<f32> or tensor<2x3xf32>, found tensor<2x2xf32>"),
        (2, -4, "block_size is -4, accepted are 0 and more"),
        (2, 0, "scale must be tensor<f32> or tensor<7xf32>, found tensor<2x2xf32>"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(blocks: int, block_size: int, message: str) -> None:
    model = parser.parse_model(
        f"""
        <ir_version: 10, opset_import: ["" : 21]>
        g (uint8[2,7] x, float[2,{blocks}] s) => (float[2,7] y)
        {{ [n] y = DequantizeLinear <axis = 1, block_size = {block_size}> (x, s) }}
        """
    )
    with pytest.raises(InvalidModelError) as caught:
        byoc_mlir.compile(model)
    assert f"node 'n' (DequantizeLinear): relay.qnn.dequantize: {message}" in str(caught.value)


def test_blocks_whose_last_is_shorter() -> None:
    model = parser.parse_model(
        """
        <ir_version: 10, opset_import: ["" : 21]>
        g (int8[2,7] x, float[2,3] s) => (float[2,7] y)
        { y = DequantizeLinear <axis = 1, block_size = 3> (x, s) }
        """
    )
    rng = np.random.default_rng(16)
    inputs = {"x": bytes_of(rng, I8, 2, 7), "s": rng.random((2, 3)).astype(np.float32)}
    expected = inputs["x"] * np.repeat(inputs["s"], 3, 1)[:, :7]
    np.testing.assert_array_equal(run_passes(model, inputs, integers=True)[0], expected)


def test_compiled_as_evaluated() -> None:
    rng = np.random.default_rng(15)
    inputs = {
        "x": bytes_of(rng, U8, 1, 4, 6, 6),
        "xs": f32(0.02),
        "xz": U8(9),
        "w": bytes_of(rng, I8, 6, 4, 3, 3),
        "ws": scales(rng, 6),
        "wz": np.zeros(6, I8),
        "ys": f32(0.4),
        "yz": U8(20),
    }
    constants = tuple(name for name in inputs if name != "x")
    model = node_model("QLinearConv", inputs, {"y": U8}, constants=constants, domain="")
    compiled = byoc_mlir.compile(model, targets=())
    found = compiled.run({"x": inputs["x"]})["y"]
    (evaluated,) = run_passes(model, inputs, integers=False)
    np.testing.assert_array_equal(found, evaluated)
    np.testing.assert_array_equal(found, run_onnxruntime(model, {"x": inputs["x"]})["y"])
