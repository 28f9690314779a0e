"""What regions of bytes are estimated to take on the host."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp

from byoc_mlir.compiler.partition.host_costs import host_milliseconds
from byoc_mlir.frontend.mlir_file import read_mlir
from byoc_mlir.rates import using_file

_RATES = '{"version": 1, "parts": {}}'
"""Those that are assumed where none was measured."""


def _milliseconds(folder: Path, outputs: int, groups: int = 1) -> float | None:
    sums, result = f"tensor<1x{outputs}x14x14xi32>", f"tensor<1x{outputs}x14x14xui8>"
    weights = f"tensor<{outputs}x{64 // groups}x3x3xi8>"
    (folder / "region.mlir").write_text(
        f"""func.func @main(%x: tensor<1x64x14x14xui8>) -> {result}
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
    )
    (folder / "rates.json").write_text(_RATES)
    (region,) = (op for op in read_mlir(folder / "region.mlir").walk() if isinstance(op, FuncOp))
    with using_file(str(folder / "rates.json")):
        return host_milliseconds(region)


def test_a_product_of_bytes_takes_what_its_kernel_does(tmp_path: Path) -> None:
    one, four = (_milliseconds(tmp_path, outputs) for outputs in (64, 256))
    assert one is not None
    assert four is not None
    assert 0.01 < one < 1
    assert four == pytest.approx(4 * one, rel=0.5)


def test_there_is_no_rate_for_channels_apart(tmp_path: Path) -> None:
    assert _milliseconds(tmp_path, 64, groups=64) is None
