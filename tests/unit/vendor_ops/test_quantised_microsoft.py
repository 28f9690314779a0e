"""Quantised ops of `com.microsoft`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from quantised_checks import bytes_of, check_quantised, f32, scales, small_bytes_of

U8, I8 = np.uint8, np.int8
F32 = np.float32


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


@pytest.mark.parametrize("dtype", [U8, I8])
def test_where(dtype: Any) -> None:
    rng = np.random.default_rng(17)
    inputs = {
        "c": rng.random((3, 1)) < 0.5,
        "x": bytes_of(rng, dtype, 3, 20),
        "xs": f32(0.03),
        "xz": dtype(5),
        "y": bytes_of(rng, dtype, 3, 20),
        "ys": f32(0.01),
        "yz": dtype(90),
        "zs": f32(0.02),
        "zz": dtype(40),
    }
    check_quantised("QLinearWhere", inputs, {"z": dtype})


def test_embedding_of_bytes() -> None:
    rng = np.random.default_rng(18)

    def table(*shape: int) -> Any:
        return bytes_of(rng, U8, *shape)

    inputs = {
        "ids": rng.integers(0, 9, (2, 5)).astype(np.int32),
        "segments": rng.integers(0, 2, (2, 5)).astype(np.int32),
        "word": table(9, 8),
        "position": table(6, 8),
        "segment": table(2, 8),
        "gamma": table(8),
        "beta": table(8),
        "mask": np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32),
        **{f"s{place}": f32(0.01 + place / 100) for place in range(5)},
        **{f"z{place}": U8(100 + place) for place in range(5)},
    }
    known = [name for name in inputs if name not in ("ids", "segments", "mask")]
    outputs = {"y": F32, "count": np.int32}
    check_quantised("QEmbedLayerNormalization", inputs, outputs, constants=known, step=1e-4)


@pytest.mark.parametrize("channels_last", [0, 1])
def test_convolution_of_layouts(channels_last: int) -> None:
    rng = np.random.default_rng(19)
    inputs = {
        "x": bytes_of(rng, U8, 1, 6, 5, 4) if channels_last else bytes_of(rng, U8, 1, 4, 6, 5),
        "xs": f32(0.02),
        "xz": U8(9),
        "w": small_bytes_of(rng, I8, 6, 4, 3, 3),
        "ws": scales(rng, 6),
        "wz": np.zeros(6, I8),
        "ys": f32(0.4),
        "yz": U8(20),
    }
    known = [name for name in inputs if name != "x"]
    check_quantised("QLinearConv", inputs, {"y": U8}, constants=known, channels_last=channels_last)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16])
def test_quantise_of_a_vendor(dtype: Any) -> None:
    rng = np.random.default_rng(20)
    data = (rng.standard_normal((3, 40)) * 30).astype(np.float32)
    inputs = {"x": data, "s": f32(0.001), "z": dtype(200)}
    check_quantised("QuantizeLinear", inputs, {"y": dtype})
    inputs = {"x": bytes_of(rng, dtype, 3, 40), "s": f32(0.001), "z": dtype(200)}
    check_quantised("DequantizeLinear", inputs, {"y": F32}, step=1e-6)
