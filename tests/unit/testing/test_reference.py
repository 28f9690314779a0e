"""Comparison of outputs: it finds all differences; inputs have the declared types."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.models import parsed

from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, largest_relative_error, random_inputs


def test_error_is_relative_to_the_largest_value() -> None:
    want = np.array([1.0, -10.0])
    assert largest_relative_error(np.array([1.5, -10.0]), want) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("got", "want"),
    [
        ([1.0, math.nan], [1.0, 2.0]),
        ([1.0, 2.0], [1.0, math.nan]),
        ([1.0, math.inf], [1.0, -math.inf]),
        ([1.0], [1.0, 2.0]),
    ],
)
def test_error_is_infinite_where_values_are_incomparable(
    got: list[float], want: list[float]
) -> None:
    assert largest_relative_error(np.array(got), np.array(want)) == math.inf


def test_equal_specials_and_empty_arrays_agree() -> None:
    values = np.array([math.nan, math.inf, -math.inf, 1.0])
    assert largest_relative_error(values, values) == 0.0
    assert largest_relative_error(np.zeros((0, 3)), np.zeros((0, 3))) == 0.0


@pytest.mark.parametrize(
    "got",
    [
        {},
        {"y": np.array([1.0, 2.1], np.float32)},
        {"y": np.array([1.0, 2.0], np.float64)},
        {"y": np.array([[1.0, 2.0]], np.float32)},
        {"y": np.array([1.0, 2.0], np.float32), "z": np.array(1)},
    ],
)
def test_assert_agrees_refuses(got: dict[str, np.ndarray]) -> None:
    with pytest.raises(AssertionError):
        assert_agrees(got, {"y": np.array([1.0, 2.0], np.float32)})


def test_assert_agrees_accepts_within_the_tolerance_and_wants_equal_integers() -> None:
    want = {"y": np.array([1.0, 2.0], np.float32), "n": np.array([1, 2])}
    assert_agrees({"y": want["y"] * np.float32(1 + 1e-6), "n": want["n"]}, want)
    with pytest.raises(AssertionError, match="n: values differ"):
        assert_agrees({"y": want["y"], "n": np.array([1, 3])}, want)


def test_token_inputs_reach_all_rows_of_their_table() -> None:
    inputs = random_inputs(NETWORKS["bert6"](vocabulary=1000), seed=5)
    assert inputs["input_ids"].dtype == np.int64
    assert 500 < inputs["input_ids"].max() < 1000
    assert set(np.unique(inputs["attention_mask"])) == {0, 1}


def test_symbolic_dimensions_take_the_given_sizes() -> None:
    model = parsed("(bool[batch, 3, other] x) => (y)", "y = Not (x)")
    inputs = random_inputs(model, dims={"batch": 5})
    assert inputs["x"].shape == (5, 3, 1)
    assert inputs["x"].dtype == np.bool_
