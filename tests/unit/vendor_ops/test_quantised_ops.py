"""Quantised ops of ONNX and `com.microsoft`: types, granularity, zero points, ends of ranges."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from nodes import node_model
from quantised_checks import bytes_of, check_quantised, run_passes

import byoc_mlir
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.testing.reference import run_onnxruntime

U8, I8 = np.uint8, np.int8
TYPES = [(U8, U8), (U8, I8), (I8, I8)]
F32 = np.float32


def f32(number: float) -> np.float32:
    return np.float32(number)


def scales(rng: np.random.Generator, count: int) -> Any:
    return (rng.random(count) * 0.05 + 0.001).astype(np.float32)


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
        "b": bytes_of(rng, of_b, 40, 7),
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
    a, b = bytes_of(rng, of_a, 2, 3, 300), bytes_of(rng, of_b, 300, 5)
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


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize("shift", [0, 3, 100])
def test_binary(op_type: str, dtype: Any, shift: int) -> None:
    rng = np.random.default_rng(6)
    a, b = bytes_of(rng, dtype, 2, 3, 20), bytes_of(rng, dtype, 3, 1)
    parameters = {
        "A": a,
        "As": f32(0.03),
        "Az": dtype(shift),
        "B": b,
        "Bs": f32(0.11),
        "Bz": dtype(7 * shift % 100),
        "Cs": f32(0.05),
        "Cz": dtype(shift),
    }
    check_quantised(op_type, parameters, {"y": dtype})


@pytest.mark.parametrize("dtype", [U8, I8])
def test_concat(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    inputs = {
        "ys": f32(0.05),
        "yz": dtype(3),
        "a": bytes_of(rng, dtype, 2, 3, 4),
        "as": f32(0.05),
        "az": dtype(3),
        "b": bytes_of(rng, dtype, 2, 5, 4),
        "bs": f32(0.2),
        "bz": dtype(90),
    }
    check_quantised("QLinearConcat", inputs, {"y": dtype}, axis=1)


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize("channels_last", [0, 1])
def test_global_average_pool(dtype: Any, channels_last: int) -> None:
    rng = np.random.default_rng(8)
    inputs = {
        "x": bytes_of(rng, dtype, 2, 8, 5, 6),
        "xs": f32(0.02),
        "xz": dtype(50),
        "ys": f32(0.005),
        "yz": dtype(30),
    }
    known = ("xs", "xz", "ys", "yz")
    check_quantised(
        "QLinearGlobalAveragePool",
        inputs,
        {"y": dtype},
        constants=known,
        channels_last=channels_last,
    )


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize("counted", [0, 1])
def test_average_pool(dtype: Any, counted: int) -> None:
    rng = np.random.default_rng(9)
    inputs = {
        "x": bytes_of(rng, dtype, 2, 3, 7, 6),
        "xs": f32(0.02),
        "xz": dtype(50),
        "ys": f32(0.015),
        "yz": dtype(30),
    }
    check_quantised(
        "QLinearAveragePool",
        inputs,
        {"y": dtype},
        constants=("xs", "xz", "ys", "yz"),
        kernel_shape=[3, 2],
        pads=[1, 1, 1, 0],
        strides=[2, 1],
        count_include_pad=counted,
    )


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize(
    ("op_type", "attributes", "scale"),
    [
        ("QLinearSigmoid", {}, 1 / 256),
        ("QLinearLeakyRelu", {"alpha": 0.3}, 0.06),
        ("QLinearSoftmax", {"opset": 17, "axis": -1}, 1 / 256),
        ("QLinearSoftmax", {"opset": 12, "axis": 1}, 1 / 256),
    ],
)
def test_functions(op_type: str, attributes: dict[str, Any], scale: float, dtype: Any) -> None:
    rng = np.random.default_rng(10)
    every = np.arange(256, dtype=np.uint8).view(dtype).reshape(4, 8, 8)
    inputs = {
        "x": rng.permuted(every),
        "xs": f32(0.05),
        "xz": dtype(40),
        "ys": f32(scale),
        "yz": dtype(np.iinfo(dtype).min),
    }
    known = ("xs", "xz", "ys", "yz")
    check_quantised(op_type, inputs, {"y": dtype}, constants=known, **attributes)


@pytest.mark.parametrize(("of_a", "of_b"), [(U8, U8), (U8, I8), (I8, I8)])
@pytest.mark.parametrize("quantised", [False, True])
def test_qgemm(of_a: Any, of_b: Any, quantised: bool) -> None:
    rng = np.random.default_rng(11)
    inputs = {
        "a": bytes_of(rng, of_a, 40, 4),
        "as": f32(0.02),
        "az": of_a(100),
        "b": bytes_of(rng, of_b, 6, 40),
        "bs": scales(rng, 6),
        "bz": np.zeros(6, of_b),
        "c": rng.integers(-5000, 5000, 6).astype(np.int32),
        "ys": f32(0.3) if quantised else None,
        "yz": of_a(17) if quantised else None,
    }
    constants = [name for name in inputs if name != "a" and inputs[name] is not None]
    check_quantised(
        "QGemm",
        inputs,
        {"y": of_a if quantised else F32},
        constants=constants,
        step=1e-4,
        transA=1,
        transB=1,
        alpha=1.5,
    )


@pytest.mark.parametrize("of_b", [U8, I8])
@pytest.mark.parametrize("per_column", [False, True])
def test_products_with_results_of_floats(of_b: Any, per_column: bool) -> None:
    rng = np.random.default_rng(12)
    weight = {
        "b": bytes_of(rng, of_b, 40, 6),
        "bs": scales(rng, 6) if per_column else f32(0.03),
    }
    shift = bytes_of(rng, of_b, 6) if per_column else of_b(5)
    bias = rng.standard_normal(6).astype(np.float32)
    a = rng.standard_normal((3, 5, 40)).astype(np.float32)
    inputs = {"a": a, **weight, "bz": shift, "bias": bias}
    known = ("b", "bs", "bz", "bias")
    check_quantised("DynamicQuantizeMatMul", inputs, {"y": F32}, constants=known, step=1e-3)
    inputs = {
        "a": bytes_of(rng, U8, 3, 5, 40),
        "b": weight["b"],
        "as": f32(0.02),
        "bs": weight["bs"],
        "az": U8(100),
        "bz": shift,
        "bias": bias,
    }
    check_quantised("MatMulIntegerToFloat", inputs, {"y": F32}, constants=known, step=1e-3)


@pytest.mark.parametrize("of_weight", [U8, I8])
@pytest.mark.parametrize("causal", [0, 1])
def test_qattention(of_weight: Any, causal: int) -> None:
    rng = np.random.default_rng(13)
    inputs = {
        "x": bytes_of(rng, U8, 2, 5, 8),
        "w": bytes_of(rng, of_weight, 8, 24),
        "b": rng.standard_normal(24).astype(np.float32),
        "xs": f32(0.01),
        "ws": f32(0.01),
        "mask": None if causal else np.array([5, 3], np.int32),
        "xz": U8(128),
        "wz": of_weight(0),
    }
    known = ("w", "b", "xs", "ws", "xz", "wz")
    check_quantised(
        "QAttention",
        inputs,
        {"y": F32},
        constants=known,
        step=1e-4,
        num_heads=2,
        unidirectional=causal,
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


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("per_unit", [False, True])
def test_dynamic_quantize_lstm(direction: str, per_unit: bool) -> None:
    rng = np.random.default_rng(16)
    count, hidden, width, steps, batch = 1 + (direction == "bidirectional"), 6, 5, 4, 2
    shape = (count, 4 * hidden) if per_unit else (count,)
    inputs = {
        "x": rng.standard_normal((steps, batch, width)).astype(np.float32),
        "w": bytes_of(rng, I8, count, width, 4 * hidden),
        "r": bytes_of(rng, I8, count, hidden, 4 * hidden),
        "b": (rng.standard_normal((count, 8 * hidden)) * 0.1).astype(np.float32),
        "lens": None,
        "h": (rng.standard_normal((count, batch, hidden)) * 0.5).astype(np.float32),
        "c": (rng.standard_normal((count, batch, hidden)) * 0.5).astype(np.float32),
        "p": None,
        "ws": np.full(shape, 0.004, F32),
        "wz": np.zeros(shape, I8),
        "rs": np.full(shape, 0.006, F32),
        "rz": np.zeros(shape, I8),
    }
    known = [name for name in inputs if name not in ("x", "h", "c") and inputs[name] is not None]
    check_quantised(
        "DynamicQuantizeLSTM",
        inputs,
        ("y", "yh", "yc"),
        constants=known,
        step=1e-4,
        direction=direction,
        hidden_size=hidden,
    )
