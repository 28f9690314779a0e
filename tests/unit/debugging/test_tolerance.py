"""Distances of arrays, and accepted distances."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import parser

from byoc_mlir.comparison import difference, is_close
from byoc_mlir.compiler.debugging.compare import Tolerance, is_quantised

_USUAL = Tolerance(None, None)


def test_the_largest_difference_and_its_place() -> None:
    want = np.array([[1.0, np.nan, np.inf], [4.0, -8.0, 0.0]])
    got = want.copy()
    got[1, 0] = 4.5
    found = difference(got, want)
    assert (found.largest, found.at, found.found, found.wanted) == (0.5, (1, 0), 4.5, 4.0)
    assert found.scale == 8.0
    assert found.mean == pytest.approx(0.5 / 6)
    assert found.relative == 0.5 / 8


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_differs_infinitely(wrong: float) -> None:
    for got, want in (([wrong, 1.0], [1.0, 1.0]), ([1.0, 1.0], [wrong, 1.0])):
        assert difference(np.array(got), np.array(want)).largest == np.inf
        assert not _USUAL.accepts(np.array(got), np.array(want))
        assert list(is_close(np.array(got), np.array(want), 1e9)) == [False, True]


def test_shapes_and_empty_arrays() -> None:
    assert difference(np.zeros(2), np.zeros(3)).problem == "its shape is [2], not [3]"
    assert difference(np.zeros(0), np.zeros(0)).largest == 0
    assert not _USUAL.accepts(np.zeros(2), np.zeros(3))
    assert _USUAL.accepts(np.zeros((0, 3)), np.zeros((0, 3)))


@pytest.mark.parametrize(
    ("dtype", "accepted"),
    [(np.float64, 1e-7), (np.float32, 1e-4), (np.float16, 4e-3), (ml_dtypes.bfloat16, 3e-2)],
)
def test_by_type(dtype: type, accepted: float) -> None:
    want = np.array([0.0, 64.0], dtype)
    for factor, answer in ((0.9, True), (2.5, False)):
        got = np.array([64 * factor * accepted, 64.0], np.float64).astype(dtype)
        assert _USUAL.accepts(got, want) == answer


def test_integers() -> None:
    want = np.array([7, 9], np.uint8)
    got = want + np.array([1, 0], np.uint8)
    assert _USUAL.accepts(got, want)
    assert not _USUAL.accepts(got.astype(np.int32), want.astype(np.int32))
    assert not _USUAL.accepts(got + np.uint8(2), want)
    assert Tolerance(None, None, is_rounded=True).accepts(got + np.uint8(2), want)
    assert Tolerance(None, 3.0).accepts(got.astype(np.int64) + 2, want.astype(np.int64))
    assert not Tolerance(None, 0.0).accepts(got, want)


def test_quantised_models() -> None:
    head = '<ir_version: 10, opset_import: ["" : 18]> net (float[2] x) => (float[2] y)'
    plain = parser.parse_model(f"{head} {{ y = Abs (x) }}")
    rounded = parser.parse_model(f"{head} {{ q, s, z = DynamicQuantizeLinear (x) y = Abs (x) }}")
    assert not is_quantised(plain)
    assert is_quantised(rounded)
