"""Convolutions of `bf16` by built-in kernels, requested here wherever they are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bf16_models import assert_close
from measured import measured
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.backends.dnnl.dialect import DNNL, ConvolutionOp
from byoc_mlir.backends.dnnl.primitives.own_kernels import sharing_code
from byoc_mlir.calibration import Calibration, write_calibration
from byoc_mlir.compiler.calibration import calibration_of
from byoc_mlir.dialects import make_context
from byoc_mlir.kernels.costs import RoundedCalibration
from byoc_mlir.onednn.engine import engine
from byoc_mlir.testing.isa import call_at, distinct_levels
from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.reference import random_inputs, run_onnxruntime

_REGION = """
func.func private @r(%x: tensor<1x32x8x8xbf16>) -> tensor<1x32x8x8xbf16>
    attributes {byoc.compiler = "dnnl"} {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<32x1x3x3xbf16>
  %v = relay.constant #relay.weight<"v", "00000000000000000000000000000002">
      : tensor<32x32x3x3xbf16>
"""
_CONVOLUTION = """
  %{to} = dnnl.convolution %{source}, %{weights} {{strides = [1, 1], padding = [1, 1, 1, 1],
      dilation = [1, 1], groups = {groups} : i64, post_ops = [{limits}]}}
      : (tensor<1x32x8x8xbf16>, tensor<32x{inputs}x3x3xbf16>) -> tensor<1x32x8x8xbf16>
"""


def test_channels_apart_share_code() -> None:
    """Checks two depthwise convolutions with the same windows and limits, one with others, and one
    of all channels.
    """
    relu = "#dnnl.eltwise<relu, 0.0>"
    kinds = [("w", 32, 1, relu), ("w", 32, 1, relu), ("w", 32, 1, ""), ("v", 1, 32, relu)]
    body = "".join(
        _CONVOLUTION.format(
            to=number,
            source=number - 1 if number else "x",
            weights=weights,
            groups=groups,
            inputs=inputs,
            limits=limits,
        )
        for number, (weights, groups, inputs, limits) in enumerate(kinds)
    )
    text = f"{_REGION}{body}  func.return %3 : tensor<1x32x8x8xbf16>\n}}"
    context = make_context()
    context.load_dialect(DNNL)
    module = Parser(context, text).parse_module()
    found = [op for op in module.walk() if isinstance(op, ConvolutionOp)]
    assert [sharing_code(op) for op in found] == [2, 2, 1, 1]


_TARGET = "dnnl{winograd=off convolution=depthwise layout=channels_last}"


def check_channels_apart(number: str = "") -> None:
    """Checks windows of 3 and 5 pixels, strides, no bias, limits, and a value that is not
    finite."""
    net = GraphBuilder("net", seed=0)
    x = net.relu6(net.conv(net.input("x", [2, 3, 23, 25]), 40, 1))
    x = net.relu6(net.conv(x, 40, 3, groups=40))
    x = net.relu(net.conv(x, 40, 5, stride=2, groups=40))
    x = net.conv(x, 40, 3, groups=40, bias=False)
    net.output(net.conv(x, 16, 1), "y", [2, 16, 12, 13])
    model = net.build()
    inputs = random_inputs(model)
    if number:
        inputs["x"][1, 2, 3, 4] = float(number)
    with byoc_mlir.compile(model, (_TARGET,), 2, "bf16", prune="off") as executable:
        found, rows = executable.run(inputs), executable.report()
    if engine().has_bf16:
        assert [row.implementation for row in rows].count("depthwise") >= 3, rows
    wanted = run_onnxruntime(model, inputs)
    if not number:
        assert_close(found, wanted)
        return
    np.testing.assert_array_equal(np.isnan(found["y"]), np.isnan(wanted["y"]))
    is_number = ~np.isnan(wanted["y"])
    assert_close({"y": found["y"][is_number]}, {"y": wanted["y"][is_number]})


def check_assumed_calibration() -> None:
    found = calibration_of(None).view(RoundedCalibration.of)
    assert found == RoundedCalibration()


def test_calibration_are_assumed_without_instructions_for_bf16() -> None:
    call_at("avx2", check_assumed_calibration)


def check_swish(activation: str) -> None:
    """Checks swish after convolutions of all channels and depthwise ones, fused or separate."""
    net = GraphBuilder("net", seed=0)
    x = net.conv(net.input("x", [1, 8, 17, 19]), 48, 1)
    for groups in (48, 1, 48):
        x = net.op("Mul", x, net.op("Sigmoid", x))
        net.channels[x] = 48
        x = net.conv(x, 48, 3, groups=groups)
    net.output(x, "y", [1, 48, 17, 19])
    model = net.build()
    inputs = random_inputs(model)
    target = f"dnnl{{winograd=off layout=channels_last activation={activation}}}"
    with byoc_mlir.compile(model, (target,), 1, "bf16", prune="off") as executable:
        assert_close(executable.run(inputs), run_onnxruntime(model, inputs))
        report = str(executable.report())
    assert ("loop:swish" in report) == (activation == "loop")


@pytest.mark.parametrize("activation", ["loop", "post_op"])
@pytest.mark.parametrize("level", distinct_levels("avx2", "avx512_bf16", "amx"))
def test_swish(level: str, activation: str) -> None:
    call_at(level, check_swish, activation)


@pytest.mark.parametrize("level", distinct_levels("avx2", "avx512_bf16", "amx"))
def test_channels_apart(level: str) -> None:
    call_at(level, check_channels_apart)


def test_numbers_that_are_not_finite_go_through_channels_apart() -> None:
    check_channels_apart("nan")


@pytest.mark.parametrize("rate", [1e15, 1.0])
def test_images_of_colours(rate: float, tmp_path: Path) -> None:
    """Checks images in planes, which become NHWC on the way to the first convolution, by built-in
    kernels or not.
    """
    net = GraphBuilder("net", seed=0)
    x = net.relu(net.conv(net.input("x", [2, 3, 160, 163]), 16, 3, stride=2))
    net.output(net.conv(x, 16, 1), "y", [2, 16, 80, 82])
    model = net.build()
    inputs = random_inputs(model)
    rounded = {"depthwise": 1e7, "interleaved": rate}
    known = {**calibration_of(None).as_json(), **Calibration(measured(rounded=rounded)).as_json()}
    write_calibration(calibration_of(known), tmp_path / "calibration.json")
    with byoc_mlir.compile(
        model,
        ("dnnl{winograd=off}",),
        2,
        "bf16",
        prune="off",
        calibration=tmp_path / "calibration.json",
    ) as executable:
        assert_close(executable.run(inputs), run_onnxruntime(model, inputs))
