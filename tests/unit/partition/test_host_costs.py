"""Estimated times of quantised regions and recurrent layers on the host."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp

from byoc_mlir.calibration import using_file
from byoc_mlir.compiler.partition.host_costs import host_milliseconds
from byoc_mlir.frontend.files.mlir_file import read_mlir
from byoc_mlir.kernels.costs import ConvolutionCalibration

_RATES = '{"version": 2, "measurements": {}}'
"""File without measurements, so that the default parameters hold."""


def _milliseconds(folder: Path, outputs: int, groups: int = 1) -> float | None:
    sums, result = f"tensor<1x{outputs}x14x14xi32>", f"tensor<1x{outputs}x14x14xui8>"
    weights = f"tensor<{outputs}x{64 // groups}x3x3xi8>"
    text = f"""func.func @main(%x: tensor<1x64x14x14xui8>) -> {result}
            attributes {{byoc.compiler = "npu"}} {{
          %w = relay.constant dense<1> : {weights}
          %z = relay.constant dense<3> : tensor<ui8>
          %zw = relay.constant dense<0> : tensor<i8>
          %z0 = relay.constant dense<0> : tensor<i32>
          %s = relay.constant dense<0.01> : tensor<f32>
          %0 = relay.qnn.conv2d %x, %w, %z, %zw {{strides = [1, 1], padding = [1, 1, 1, 1],
              dilation = [1, 1], groups = {groups}}}
              : (tensor<1x64x14x14xui8>, {weights}, tensor<ui8>, tensor<i8>) -> {sums}
          %1 = relay.qnn.requantize %0, %s, %z0, %s, %z
              : ({sums}, tensor<f32>, tensor<i32>, tensor<f32>, tensor<ui8>) -> {result}
          func.return %1 : {result}
        }}"""
    return _estimated(folder, text)


def _estimated(folder: Path, region_text: str) -> float | None:
    (folder / "region.mlir").write_text(region_text)
    (folder / "calibration.json").write_text(_RATES)
    (region,) = (op for op in read_mlir(folder / "region.mlir").walk() if isinstance(op, FuncOp))
    with using_file(str(folder / "calibration.json")):
        return host_milliseconds(region)


def test_a_product_of_bytes_takes_what_its_kernel_does(tmp_path: Path) -> None:
    one, four = (_milliseconds(tmp_path, outputs) for outputs in (64, 256))
    assert one is not None
    assert four is not None
    assert 0.01 < one < 1
    assert four == pytest.approx(4 * one, rel=0.5)


def test_channels_apart_take_what_loops_do(tmp_path: Path) -> None:
    apart, together = (_milliseconds(tmp_path, 64, groups) for groups in (64, 1))
    assert apart is not None
    assert together is not None
    assert 0.005 < apart < together


def _convolution(folder: Path, groups: int, after: str = "") -> float:
    image, weights = "tensor<1x64x56x56xf32>", f"tensor<64x{64 // groups}x3x3xf32>"
    text = f"""func.func @main(%x: {image}, %b: tensor<64xf32>) -> {image}
            attributes {{byoc.compiler = "npu"}} {{
          %w = relay.constant dense<0.5> : {weights}
          %0 = relay.nn.conv2d %x, %w {{strides = [1, 1], padding = [1, 1, 1, 1],
              dilation = [1, 1], groups = {groups}}} : ({image}, {weights}) -> {image}
          {after}
          func.return {"%1" if after else "%0"} : {image}
        }}"""
    milliseconds = _estimated(folder, text)
    assert milliseconds is not None
    return milliseconds


def test_a_bias_is_part_of_its_convolution(tmp_path: Path) -> None:
    image = "tensor<1x64x56x56xf32>"
    bias = f"%1 = relay.nn.bias_add %0, %b {{axis = 1}} : ({image}, tensor<64xf32>) -> {image}"
    assert _convolution(tmp_path, 1, bias) == _convolution(tmp_path, 1)


def test_a_depthwise_convolution_takes_what_its_kernel_does(tmp_path: Path) -> None:
    """Checks that it takes the time to move its images and to compute, not that of loops."""
    moving = 2 * 4 * 64 * 56 * 56 / ConvolutionCalibration().transformed_bytes
    computing = 9 * 64 * 56 * 56 / ConvolutionCalibration().products
    assert _convolution(tmp_path, 64) == pytest.approx(moving + computing, rel=0.01)


def _layer(folder: Path, steps: int, batch: int, size: int) -> float:
    text = f"""func.func @main(%x: tensor<{steps}x1x{batch}x{4 * size}xf32>,
            %h: tensor<1x{batch}x{size}xf32>) -> tensor<{steps}x1x{batch}x{size}xf32>
            attributes {{byoc.compiler = "npu"}} {{
          %w = relay.constant dense<0.5> : tensor<1x{size}x{4 * size}xf32>
          %0, %1, %2 = relay.nn.lstm %x, %w, %h, %h : (tensor<{steps}x1x{batch}x{4 * size}xf32>,
              tensor<1x{size}x{4 * size}xf32>, tensor<1x{batch}x{size}xf32>,
              tensor<1x{batch}x{size}xf32>) -> (tensor<{steps}x1x{batch}x{size}xf32>,
              tensor<1x{batch}x{size}xf32>, tensor<1x{batch}x{size}xf32>)
          func.return %0 : tensor<{steps}x1x{batch}x{size}xf32>
        }}"""
    milliseconds = _estimated(folder, text)
    assert milliseconds is not None
    return milliseconds


def test_a_recurrent_layer_takes_its_steps(tmp_path: Path) -> None:
    one = _layer(tmp_path, 10, 8, 64)
    assert _layer(tmp_path, 20, 8, 64) == pytest.approx(2 * one)
    assert _layer(tmp_path, 10, 8, 128) == pytest.approx(4 * one, rel=0.3)
    assert _layer(tmp_path, 10, 16, 64) == pytest.approx(2 * one, rel=0.3)


def test_a_single_sequence_waits_for_weights(tmp_path: Path) -> None:
    """Checks that one batch entry takes nearly as long as four, since reading the weights
    dominates.
    """
    one, four = (_layer(tmp_path, 10, batch, 256) for batch in (1, 4))
    assert one < four < 3 * one
