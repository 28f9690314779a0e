"""Quantised matmuls whose number of rows is an argument of native code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from dynamic_models import Sizes, check_one_program
from onnx import TensorProto

from byoc_mlir.testing.networks import GraphBuilder

_WIDTH, _OUTPUTS = 20, 37
_ROWS = [(1, 1), (1, 2), (1, 3), (5, 1), (2, 7), (1, 15), (0, 3), (4, 33), (7, 50)]
"""Numbers of rows below any tile's, and above."""


def _weight(b: GraphBuilder) -> str:
    return b.constant(b.rng.integers(-127, 128, (_WIDTH, _OUTPUTS)).astype(np.int8), "weight")


def _dynamic(b: GraphBuilder) -> str:
    """Adds a matmul as ONNX Runtime's dynamic quantisation writes it."""
    x = b.input("x", ["n", "m", _WIDTH])
    codes, scale, zero = b.ops("DynamicQuantizeLinear", x, outputs=3)
    total = b.op("MatMulInteger", codes, _weight(b), zero, b.constant(np.array(0, np.int8)))
    number = b.op("Cast", total, to=TensorProto.FLOAT)
    scaled = b.op("Mul", number, b.op("Mul", scale, b.scalar(0.01)))
    return b.op("Add", scaled, b.normal((_OUTPUTS,), 0.3, "bias"))


def _fixed(b: GraphBuilder) -> str:
    """Adds a matmul between `QuantizeLinear` and `DequantizeLinear` nodes, with a scale for each
    output.
    """
    x = b.input("x", ["n", "m", _WIDTH])
    scale, zero = b.scalar(0.03), b.constant(np.array(120, np.uint8))
    known = b.op("DequantizeLinear", b.op("QuantizeLinear", x, scale, zero), scale, zero)
    scales = b.uniform((_OUTPUTS,), 0.005, 0.02, "scales")
    zeros = b.constant(np.zeros(_OUTPUTS, np.int8))
    weight = b.op("DequantizeLinear", _weight(b), scales, zeros, axis=1)
    return b.op("Add", b.op("MatMul", known, weight), b.normal((_OUTPUTS,), 0.3, "bias"))


def _of_bytes(b: GraphBuilder) -> str:
    x = b.input("x", ["n", "m", _WIDTH])
    scale, zero = b.scalar(0.03), b.constant(np.array(120, np.uint8))
    parts = [b.op("QuantizeLinear", x, scale, zero), scale, zero]
    parts += [_weight(b), b.scalar(0.01), b.constant(np.array(0, np.int8))]
    coarse = b.scalar(0.05)
    y = b.op("QLinearMatMul", *parts, coarse, zero)
    return b.op("DequantizeLinear", y, coarse, zero)


def _computed(b: GraphBuilder) -> str:
    """Adds a matmul of two computed operands."""
    x = b.input("x", ["n", "m", _WIDTH])
    scale, zero = b.scalar(0.03), b.constant(np.array(120, np.uint8))
    codes = b.op("QuantizeLinear", x, scale, zero)
    total = b.op("MatMulInteger", codes, b.transpose(codes, 0, 2, 1), zero, zero)
    return b.op("Cast", total, to=TensorProto.FLOAT)


@pytest.mark.parametrize("network", [_dynamic, _fixed, _of_bytes, _computed])
def test_a_quantised_product_is_one_program(network: Callable[[GraphBuilder], str]) -> None:
    b = GraphBuilder("product", seed=0)
    b.output(network(b), "y", [None] * 3)
    sizes: list[Sizes] = [{"n": n, "m": m} for n, m in _ROWS]
    check_one_program(b.build(), sizes)
