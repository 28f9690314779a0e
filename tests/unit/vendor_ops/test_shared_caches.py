"""MultiHeadAttention of `com.microsoft` with a cache that keeps its size, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nodes import Arrays, node_model, run_imported
from numpy.typing import NDArray

import byoc_mlir
from byoc_mlir.errors import InvalidInputError, UnsupportedModelError
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

RNG = np.random.default_rng(0)
HEADS, SIZE = 2, 4
OUTPUTS = ("y", "present_k", "present_v")


def floats(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def step(batch: int, new: int, capacity: int, filled: int, **more: NDArray[Any]) -> Arrays:
    """Returns the inputs of new tokens after `filled` others."""
    return {
        "q": floats(batch, new, HEADS * SIZE),
        "k": floats(batch, new, HEADS * SIZE),
        "v": floats(batch, new, HEADS * SIZE),
        "b": more.get("b"),
        "m": more.get("m"),
        "a": more.get("a"),
        "pk": floats(batch, HEADS, capacity, SIZE),
        "pv": floats(batch, HEADS, capacity, SIZE),
        "filled": np.array([filled], np.int32),
        "beams": more.get("beams"),
    }


def check(inputs: Arrays, **attributes: Any) -> None:
    model = node_model("MultiHeadAttention", inputs, OUTPUTS, num_heads=HEADS, **attributes)
    fed = {name: array for name, array in inputs.items() if array is not None}
    assert_agrees(run_imported(model, inputs), run_onnxruntime(model, fed), 1e-5)


@pytest.mark.values
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize(
    ("batch", "new", "filled"), [(1, 1, 3), (2, 1, 0), (2, 3, 0), (2, 3, 5), (1, 8, 0)]
)
def test_new_tokens_behind_others(batch: int, new: int, filled: int, causal: int) -> None:
    bias = floats(3 * HEADS * SIZE)
    check(step(batch, new, 8, filled, b=bias), unidirectional=causal, scale=0.4)


@pytest.mark.parametrize(
    "more",
    [
        {"a": floats(1, HEADS, 2, 5)},
        {"m": np.array([[1, 0, 1, 1, 1], [1, 1, 1, 0, 1]], np.int32)},
        {"m": RNG.integers(0, 2, (2, 2, 5)).astype(np.int32), "a": floats(2, 1, 2, 5)},
        {"m": np.array([5, 3], np.int32)},
    ],
)
def test_masks_for_the_tokens_there_are(more: dict[str, NDArray[Any]]) -> None:
    check(step(2, 2, 8, 3, **more))


@pytest.mark.parametrize(("groups", "beams", "new"), [(1, 3, 1), (2, 2, 1), (3, 1, 1), (1, 2, 2)])
def test_beams_attend_to_tokens_of_one_another(groups: int, beams: int, new: int) -> None:
    places = RNG.integers(0, beams, (groups, beams, 8)).astype(np.int32)
    places[..., 5:] = -7  # of no token
    check(step(groups * beams, new, 8, 5, beams=places))


@pytest.mark.parametrize("beams", [None, RNG.integers(0, 2, (1, 2, 160)).astype(np.int32)])
def test_as_much_of_a_large_cache_as_is_filled(beams: NDArray[np.int32] | None) -> None:
    capacity = 160
    inputs = dict(step(2, 1, capacity, 0, **({} if beams is None else {"beams": beams})))
    model = node_model("MultiHeadAttention", inputs, OUTPUTS, num_heads=HEADS)
    fed = {name: array for name, array in inputs.items() if array is not None}
    with byoc_mlir.compile(model, targets=()) as executable:
        for filled in (0, 31, 32, 100, 159):
            fed["filled"] = np.array([filled], np.int32)
            assert_agrees(executable.run(fed), run_onnxruntime(model, fed), 1e-5)
        for wrong in (-1, 160):
            with pytest.raises(InvalidInputError, match=f"past_sequence_length is {wrong}; .*159"):
                executable.run({**fed, "filled": np.array([wrong], np.int32)})


def test_a_beam_that_there_is_not() -> None:
    inputs = step(2, 1, 8, 3, beams=np.full((1, 2, 8), 2, np.int32))
    model = node_model("MultiHeadAttention", inputs, OUTPUTS, num_heads=HEADS)
    fed = {name: array for name, array in inputs.items() if array is not None}
    with (
        byoc_mlir.compile(model, targets=()) as executable,
        pytest.raises(InvalidInputError, match="cache_indirection is 2; accepted are 0 to 1"),
    ):
        executable.run(fed)


@pytest.mark.parametrize("causal", [0, 1])
def test_scores(causal: int) -> None:
    inputs = dict(step(2, 3, 5, 0, a=floats(2, HEADS, 3, 8), m=np.array([8, 6], np.int32)))
    del inputs["filled"], inputs["beams"]
    outputs = (*OUTPUTS, "qk")
    attributes: dict[str, Any] = {"num_heads": HEADS, "mask_filter_value": -9.0}
    attributes["unidirectional"] = causal
    model = node_model("MultiHeadAttention", inputs, outputs, **attributes)
    fed = {name: array for name, array in inputs.items() if array is not None}
    want, got = run_onnxruntime(model, fed), run_imported(model, inputs)
    for results in (got, want):
        results["qk"] = np.maximum(results["qk"], -100)  # what is hidden is as low as can be
    assert_agrees(got, want, 1e-5)


def test_scores_of_a_size_that_is_known_when_the_model_runs() -> None:
    inputs = step(1, 1, 8, 3)
    model = node_model("MultiHeadAttention", inputs, (*OUTPUTS, "qk"), num_heads=HEADS)
    with pytest.raises(UnsupportedModelError, match="qk is as large as past_sequence_length says"):
        byoc_mlir.compile(model, targets=())
