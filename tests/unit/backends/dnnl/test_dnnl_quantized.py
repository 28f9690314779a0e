"""Quantised convolutions, additions and pools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.models import model_of
from measured import write_measured
from onnx import helper
from quantized_models import (
    Convolution,
    assert_within_a_step,
    check_at_level,
    draw,
    run,
)

import byoc_mlir
from byoc_mlir.onednn.engine import engine
from byoc_mlir.testing.forked import run_forked
from byoc_mlir.testing.isa import call_at, distinct_levels
from byoc_mlir.testing.reference import run_onnxruntime


@pytest.mark.parametrize(
    ("it", "needs_vnni"),
    [
        (Convolution(draw(np.uint8, 2, 16, 9, 7), draw(np.int8, 24, 16, 3, 3), pads=(1, 1)), True),
        (
            Convolution(
                draw(np.int8, 1, 8, 9, 9), draw(np.int8, 16, 8, 1, 1), np.int8, strides=(2, 2)
            ),
            False,
        ),
        (
            Convolution(
                draw(np.uint8, 1, 16, 8, 8), draw(np.int8, 16, 1, 3, 3) // 2, np.int8, groups=16
            ),
            False,
        ),
        (Convolution(draw(np.int8, 2, 18, 7, 9), draw(np.int8, 30, 6, 1, 1), groups=3), False),
        (Convolution(draw(np.uint8, 1, 3, 12, 11), draw(np.int8, 8, 3, 5, 5) // 2), False),
    ],
    ids=["3x3", "of i8", "depthwise", "groups", "few channels"],
)
def test_convolution(it: Convolution, needs_vnni: bool) -> None:
    model = model_of([it.node("x", "y")], {"x": it.data}, it.constants(), ["y"])
    found, report = run(model, {"x": it.data})
    assert_within_a_step(found, it.expected())
    if engine().has_vnni or not needs_vnni:
        assert report.composites == {"dnnl.qnn_conv2d_bias": 1}


def test_depthwise_by_our_kernel(tmp_path: Path) -> None:
    """Checks a calibration file by which the built-in kernel takes no time."""
    it = Convolution(
        draw(np.uint8, 2, 32, 9, 7), draw(np.int8, 32, 1, 3, 3), strides=(2, 1), groups=32
    )
    model = model_of([it.node("x", "y")], {"x": it.data}, it.constants(), ["y"])
    slow = {"products": 1e3, "transformed_bytes": 1e3, "weight_bytes": 1e3}
    integers = {"products": 1e8, "bytes": 1e8, "depthwise": 1e12}
    file = tmp_path / "calibration.json"
    write_measured(file, convolutions=slow, integers=integers)
    compiled = byoc_mlir.compile(model, targets=("dnnl",), prune="off", threads=1, calibration=file)
    (found,) = compiled.run({"x": it.data}).values()
    assert_within_a_step(found, it.expected())
    assert "integer_depthwise" in str(compiled.report())


@pytest.mark.parametrize("level", distinct_levels("avx2", "avx512", "avx512_vnni"))
def test_values_that_saturate(level: str) -> None:
    call_at(level, check_at_level)


def _affine(kind: str, data: str, result: str, scale: str, zero: str) -> Any:
    return helper.make_node(kind, [data, scale, zero], [result], name=result)


def test_sum_with_relu() -> None:
    a, b = draw(np.uint8, 1, 8, 6, 6), draw(np.uint8, 1, 8, 6, 6, seed=1)
    constants = {
        name: np.array(value, dtype)
        for name, value, dtype in (
            ("sa", 0.1, np.float32),
            ("za", 100, np.uint8),
            ("sb", 0.3, np.float32),
            ("zb", 7, np.uint8),
            ("sy", 0.25, np.float32),
            ("zy", 31, np.uint8),
        )
    }
    nodes = [
        _affine("DequantizeLinear", "a", "da", "sa", "za"),
        _affine("DequantizeLinear", "b", "db", "sb", "zb"),
        helper.make_node("Add", ["da", "db"], ["sum"], name="sum"),
        helper.make_node("Relu", ["sum"], ["positive"], name="positive"),
        _affine("QuantizeLinear", "positive", "y", "sy", "zy"),
    ]
    found, report = run(model_of(nodes, {"a": a, "b": b}, constants, ["y"]), {"a": a, "b": b})
    numbers = (a.astype(np.float64) - 100) * 0.1 + (b.astype(np.float64) - 7) * 0.3
    wanted = (np.rint(np.maximum(numbers, 0) / 0.25) + 31).clip(0, 255).astype(np.uint8)
    assert_within_a_step(found, wanted)
    assert report.composites == {"dnnl.qnn_add_clip": 1}


_SMALL = Convolution(
    draw(np.uint8, 1, 16, 8, 8), draw(np.int8, 16, 16, 3, 3) // 2, pads=(1, 1), zero_point=90
)
_LARGE = Convolution(draw(np.uint8, 1, 16, 8, 8), draw(np.int8, 16, 16, 1, 1), zero_point=90)


@pytest.mark.parametrize("it", [_SMALL, _LARGE], ids=["small weights", "large weights"])
@pytest.mark.parametrize("is_second", [False, True])
def test_convolution_with_residual(it: Convolution, is_second: bool) -> None:
    """Checks a sum with a region's input; it is clipped after the convolution, too, but rounded
    once.
    """
    other = draw(np.uint8, 1, 16, 8, 8, seed=4)
    constants = it.constants() | {
        "sc": np.array(0.1, np.float32),
        "zc": np.array(90, np.uint8),
        "so": np.array(0.2, np.float32),
        "zo": np.array(20, np.uint8),
        "sy": np.array(0.3, np.float32),
        "zy": np.array(70, np.uint8),
    }
    nodes = [
        it.node("x", "c"),
        _affine("DequantizeLinear", "c", "dc", "sc", "zc"),
        _affine("DequantizeLinear", "o", "do", "so", "zo"),
        helper.make_node("Add", ["do", "dc"] if is_second else ["dc", "do"], ["sum"], name="sum"),
        helper.make_node("Relu", ["sum"], ["positive"], name="positive"),
        _affine("QuantizeLinear", "positive", "y", "sy", "zy"),
    ]
    inputs = {"x": it.data, "o": other}
    found, report = run(model_of(nodes, inputs, constants, ["y"]), inputs)
    numbers = (it.expected().astype(np.float64) - 90) * 0.1 + (other.astype(np.float64) - 20) * 0.2
    wanted = (np.rint(np.maximum(numbers, 0) / 0.3) + 70).clip(0, 255).astype(np.uint8)
    assert_within_a_step(found, wanted)
    assert report.composites == {"dnnl.qnn_conv2d_bias_sum_clip": 1}


@pytest.mark.parametrize("channels", [16, 18])
def test_a_function_of_bytes_between_convolutions(channels: int) -> None:
    """Checks that `x * sigmoid(x)` is one table, in the layout of the convolutions around it."""
    weights = draw(np.int8, channels, 16, 1, 1) // 2
    first = Convolution(draw(np.uint8, 1, 16, 9, 9), weights, zero_point=90)
    constants = {f"a_{name}": array for name, array in first.constants().items()} | {
        "s": np.array(0.05, np.float32),
        "t": np.array(1 / 255, np.float32),
        "z": np.array(90, np.uint8),
    }
    nodes = [
        first.node("x", "c", "a_"),
        _affine("DequantizeLinear", "c", "n", "s", "z"),
        helper.make_node("Sigmoid", ["n"], ["g"]),
        _affine("QuantizeLinear", "g", "gq", "t", "z"),
        _affine("DequantizeLinear", "gq", "gn", "t", "z"),
        helper.make_node("Mul", ["n", "gn"], ["m"], name="silu"),
        _affine("QuantizeLinear", "m", "y", "s", "z"),
    ]
    number = (first.expected().astype(np.float32) - 90) * np.float32(0.05)
    gate = (np.rint(255 / (1 + np.exp(-number))) + 90).clip(0, 255)
    product = number * ((gate - 90) / 255)
    wanted = (np.rint(product / np.float32(0.05)) + 90).clip(0, 255).astype(np.uint8)
    second = Convolution(wanted, draw(np.int8, 8, channels, 1, 1, seed=3) // 2, data_zero_point=90)
    nodes.append(second.node("y", "last", "b_"))
    constants |= {f"b_{name}": array for name, array in second.constants().items()}
    model = model_of(nodes, {"x": first.data}, constants, ["last"])
    found, report = run(model, {"x": first.data})
    assert_within_a_step(found, second.expected())
    if engine().has_vnni:
        assert not report.placed("host")


def test_parts_of_other_scales_are_joined_as_bytes() -> None:
    """Checks that one part is requantised to the parameters of the concatenation, in the
    convolutions' region.
    """
    parts = [
        Convolution(draw(np.uint8, 1, 16, 9, 9), draw(np.int8, 16, 16, 1, 1, seed=n) // 2, seed=n)
        for n in (0, 1)
    ]
    constants = {
        f"{n}_{name}": array for n, it in enumerate(parts) for name, array in it.constants().items()
    } | {
        "s": np.array(0.05, np.float32),
        "t": np.array(0.1, np.float32),
        "z": np.array(3, np.uint8),
        "u": np.array(40, np.uint8),
    }
    nodes = [
        *(it.node("x", f"c{n}", f"{n}_") for n, it in enumerate(parts)),
        _affine("DequantizeLinear", "c0", "n0", "s", "z"),
        _affine("DequantizeLinear", "c1", "n1", "t", "u"),
        helper.make_node("Concat", ["n0", "n1"], ["n"], axis=1, name="joined"),
        _affine("QuantizeLinear", "n", "j", "t", "u"),
    ]
    numbers = (parts[0].expected().astype(np.float32) - 3) * np.float32(0.05)
    moved = (np.rint(numbers / np.float32(0.1)) + 40).clip(0, 255).astype(np.uint8)
    joined = np.concatenate([moved, parts[1].expected()], axis=1)
    last = Convolution(joined, draw(np.int8, 8, 32, 1, 1, seed=3) // 2, data_zero_point=40)
    nodes.append(last.node("j", "y", "b_"))
    constants |= {f"b_{name}": array for name, array in last.constants().items()}
    inputs = {"x": parts[0].data}
    found, report = run(model_of(nodes, inputs, constants, ["y"]), inputs)
    assert_within_a_step(found, last.expected())
    if engine().has_vnni:
        assert not report.placed("host")


@pytest.mark.pairs
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(
    ("op_type", "attributes", "is_taken"),
    [
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, True),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, True),
        (
            "AveragePool",
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
            False,
        ),
        ("GlobalAveragePool", {}, True),
    ],
)
@pytest.mark.parametrize(("scale", "zero"), [(0.5, 17), (0.4, 17), (0.4, 0)])
def test_means_of_bytes(
    op_type: str, attributes: dict[str, Any], is_taken: bool, scale: float, zero: int, dtype: Any
) -> None:
    data = draw(dtype, 2, 18, 9, 9)
    constants = {
        "s": np.array(0.5, np.float32),
        "z": np.array(zero, dtype),
        "t": np.array(scale, np.float32),
    }
    nodes = [
        _affine("DequantizeLinear", "x", "n", "s", "z"),
        helper.make_node(op_type, ["n"], ["m"], name="mean", **attributes),
        _affine("QuantizeLinear", "m", "y", "t", "z"),
    ]
    model = model_of(nodes, {"x": data}, constants, ["y"])
    found, report = run(model, {"x": data})
    assert_within_a_step(found, run_onnxruntime(model, {"x": data})["y"])
    assert bool(report.placed("dnnl")) == (is_taken or zero == 0)


def test_one_pixel_is_left_to_the_host() -> None:
    """Checks a convolution for which the library has only reference code, so that its region would
    not compile.
    """
    it = Convolution(draw(np.uint8, 1, 96, 1, 1), draw(np.int8, 16, 96, 1, 1) // 2)
    model = model_of([it.node("x", "y")], {"x": it.data}, it.constants(), ["y"])
    found, report = run(model, {"x": it.data})
    assert_within_a_step(found, it.expected())
    assert not any("compile_failed" in row.reason for row in report)


_ALL_PRODUCTS = "dnnl{quantized_products=all}"


@pytest.mark.parametrize("has_bias", [False, True])
def test_product_to_bytes(has_bias: bool) -> None:
    data, weights = draw(np.uint8, 9, 33), draw(np.int8, 33, 20) // 2
    bias = np.arange(-10, 10, dtype=np.int32) * 700
    constants = {
        "sx": np.array(0.5, np.float32),
        "zx": np.array(17, np.uint8),
        "w": weights,
        "sw": np.random.default_rng(1).uniform(0.01, 0.02, 20).astype(np.float32),
        "zw": np.zeros(20, np.int8),
        "sb": np.array(0.5, np.float32),
        "sy": np.array(30, np.float32),
        "zy": np.array(-5, np.int8),
        "b": bias,
    }
    constants["sb"] = constants["sx"] * constants["sw"]
    nodes = [
        _affine("DequantizeLinear", "x", "dx", "sx", "zx"),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["dw"], axis=1),
        helper.make_node("DequantizeLinear", ["b", "sb"], ["db"], axis=0),
        helper.make_node("Gemm", ["dx", "dw", *(["db"] if has_bias else [])], ["p"], name="p"),
        _affine("QuantizeLinear", "p", "y", "sy", "zy"),
    ]
    model = model_of(nodes, {"x": data}, constants, ["y"])
    found, report = run(model, {"x": data}, _ALL_PRODUCTS)
    sums = (data.astype(np.int64) - 17) @ weights.astype(np.int64) + has_bias * bias
    wanted = np.rint(sums * (0.5 * constants["sw"].astype(np.float64)) / 30) - 5
    assert_within_a_step(found, wanted.clip(-128, 127).astype(np.int8))
    if engine().has_vnni:
        assert list(report.composites) == ["dnnl.qnn_dense" + "_bias" * has_bias]


@pytest.mark.parametrize("shape", [(), (20,)], ids=["one scale", "scales"])
def test_product_of_a_dynamic_quantization(shape: tuple[int, ...]) -> None:
    """Checks scales and zero points of the data that are known only when the region runs."""
    data = np.random.default_rng(0).uniform(-1, 2, (2, 5, 33)).astype(np.float32)
    weights, bias = draw(np.int8, 33, 20) // 2, np.linspace(-3, 3, 20, dtype=np.float32)
    scales = np.random.default_rng(1).uniform(0.01, 0.02, shape).astype(np.float32)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "sx", "zx"]),
        helper.make_node("MatMulInteger", ["q", "w", "zx"], ["i"], name="i"),
        helper.make_node("Cast", ["i"], ["c"], to=1),
        helper.make_node("Mul", ["sx", "sw"], ["s"]),
        helper.make_node("Mul", ["c", "s"], ["m"], name="m"),
        helper.make_node("Add", ["m", "b"], ["y"], name="y"),
    ]
    constants = {"w": weights, "sw": scales, "b": bias}
    model = model_of(nodes, {"x": data}, constants, ["y"])
    found, report = run(model, {"x": data}, _ALL_PRODUCTS)
    scale = (data.max() - data.min()) / np.float32(255)
    zero = np.rint(-data.min() / scale)
    quantised = (np.rint(data / scale) + zero).clip(0, 255)
    wanted = (quantised - zero).astype(np.float64) @ weights * (scale * scales) + bias
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())
    if engine().has_vnni:
        assert report.composites == {"dnnl.qnn_dense_scale_add": 1}


def _network() -> tuple[Any, dict[str, Any], Any]:
    """Returns a network of two convolutions and a pool."""
    first = Convolution(
        draw(np.uint8, 1, 16, 14, 14), draw(np.int8, 32, 16, 3, 3) // 2, pads=(1, 1)
    )
    weights = draw(np.int8, 16, 32, 1, 1, seed=3) // 2
    second = Convolution(first.expected(), weights, data_zero_point=3, zero_point=9, seed=5)
    nodes = [
        first.node("x", "h", "first_"),
        second.node("h", "c", "second_"),
        helper.make_node("MaxPool", ["c"], ["y"], kernel_shape=[2, 2], strides=[2, 2], name="pool"),
    ]
    constants = {
        prefix + name: array
        for prefix, it in (("first_", first), ("second_", second))
        for name, array in it.constants().items()
    }
    inputs = {"x": first.data}
    wanted = second.expected().reshape(1, 16, 7, 2, 7, 2).max((3, 5))
    return model_of(nodes, inputs, constants, ["y"]), inputs, wanted


def print_network() -> None:
    """Runs the network, for the library's log."""
    model, inputs, _ = _network()
    run(model, inputs)


def test_bytes_stay_bytes_between_primitives() -> None:
    model, inputs, wanted = _network()
    found, report = run(model, inputs)
    assert_within_a_step(found, wanted)
    assert report.composites == {"dnnl.qnn_conv2d_bias": 2}
    assert all(row.placement != "host" for row in report.rows)
    lines = _executions()
    kinds = [line.split(",")[3] for line in lines]
    assert kinds.count("convolution") >= 2
    assert kinds.count("pooling") >= 1
    assert not [line for line in lines if "src_f32" in line or "dst_f32" in line]


def _executions() -> list[str]:
    """Returns the primitives that run, from the library's own log."""
    code = "import test_dnnl_quantized as it; it.print_network()"
    printed = run_forked(code, environment={"ONEDNN_VERBOSE": "1"}, seconds=120)
    return [line for line in printed.splitlines() if line.startswith("onednn_verbose,exec")]
