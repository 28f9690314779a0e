"""Casts at the edges of the types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import NodeProto, TensorProto
from small_models import check, floats, ints, node, onnxruntime

FRACTIONS = floats(0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 3.7, -3.7, 100.9, -100.2)
SPECIAL = floats(
    *(np.nan, np.inf, -np.inf, 1e38, -1e38, 1e-40, 65504, 65520, 3e5),
    *(449, 464, 480, 1e-8, 6e-8, 2**-25),
)
INTEGERS = ints(
    *(-1, 0, 1, 127, 128, 255, 256, -128, -129, 32768, 65535, 65536, 2**31 - 1, -(2**31), 2**31),
    *(2**32, 2**53 + 1, 2**63 - 1, -(2**63)),
)
FLOAT_KINDS = "BOOL FLOAT16 BFLOAT16 DOUBLE FLOAT8E4M3FN FLOAT8E5M2 FLOAT8E4M3FNUZ FLOAT8E5M2FNUZ"
WIDE_KINDS = "INT8 INT16 INT32 UINT8 UINT16 UINT32 UINT64 BOOL FLOAT DOUBLE FLOAT16"


def _casts(kinds: Sequence[str]) -> list[NodeProto]:
    return [node("Cast", "x", to=TensorProto.DataType.Value(kind)) for kind in kinds]


def test_fractions_are_cut_off() -> None:
    check(
        _casts(["INT8", "INT16", "INT32", "INT64", *FLOAT_KINDS.split()]),
        {"x": FRACTIONS},
        opset=21,
    )


def test_fractions_to_unsigned() -> None:
    check(_casts(["UINT8", "UINT16", "UINT32", "UINT64"]), {"x": np.abs(FRACTIONS)})


@pytest.mark.parametrize("kind", FLOAT_KINDS.split())
def test_nan_infinity_and_what_is_out_of_range(kind: str) -> None:
    check(_casts([kind]), {"x": SPECIAL}, opset=21)


def test_large_floats_to_integers() -> None:
    x = floats(2147483520.0, -2147483648.0, 16777217, 1e9, -1e9)
    check(_casts(["INT32", "INT64"]), {"x": x})


def test_integers_keep_their_low_bits() -> None:
    check(_casts(WIDE_KINDS.split()), {"x": INTEGERS})


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint32, np.uint64])
def test_narrow_integers(dtype: type[np.integer]) -> None:
    info = np.iinfo(dtype)
    kinds = ["FLOAT", "INT64", "BOOL", "FLOAT16", "DOUBLE", "INT32", "UINT8"]
    check(_casts(kinds), {"x": np.array([0, 1, info.max, info.min], dtype)})


def test_through_bool() -> None:
    nodes = [
        node("Cast", "x", "b", to=TensorProto.BOOL),
        node("Cast", "b", to=TensorProto.INT32),
        node("Cast", "b", to=TensorProto.FLOAT),
    ]
    check(nodes, {"x": INTEGERS})


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rounding_of_halves_and_of_huge_numbers(dtype: type[np.floating]) -> None:
    halves = [0.5, 1.5, -2.5, -0.5, 0.49999997, -0.2, 2047.5]
    huge = [1e30, -1e30, 2.0**52, 8388609.0] if dtype is not np.float16 else [6e4]
    nodes = [node(op, "x") for op in ("Floor", "Ceil", "Round")]
    check(nodes, {"x": np.array(halves + huge, dtype)}, oracle=onnxruntime)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantisation_rounds_to_even_and_saturates(dtype: type[np.integer]) -> None:
    info = np.iinfo(dtype)
    x = floats(0, 0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, 254.5, 255.5, 127.5, -128.5)
    nodes = [node("QuantizeLinear", "x one zero"), node("DequantizeLinear", "q scale zero")]
    constants = {
        "one": np.array(1, np.float32),
        "scale": np.array(0.1, np.float32),
        "zero": np.array(3, dtype),
    }
    feeds = {"x": x, "q": np.array([info.min, info.max, 0, 5], dtype)}
    check(nodes, feeds, constants, oracle=onnxruntime)
