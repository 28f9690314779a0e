"""Inputs that do not fit: refused with their name, the value found and the accepted ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from helpers.models import model_of, node, parsed
from onnx import TensorProto, helper

import byoc_mlir
from byoc_mlir.errors import ByocError, ExecutionError, InvalidInputError
from byoc_mlir.runtime import Executable

RELU = parsed("(float[4] x) => (float[4] y)", "y = Relu (x)")


@pytest.fixture(scope="module")
def executable() -> Executable:
    model = parsed("(float[2, 3] x, float[3] y) => (float[2, 3] z)", "z = Add (x, y)")
    return byoc_mlir.compile(model, targets=())


X = np.arange(6, dtype=np.float32).reshape(2, 3)
Y = np.array([10, 20, 30], np.float32)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"x": X}, r"missing input\(s\) y; the model takes x: float32\[2, 3\], y: float32\[3\]"),
        ({"x": X, "y": Y, "w": Y}, r"unknown input\(s\) w"),
        ({"x": X.astype(np.float64), "y": Y}, r"'x' must be of float32, found float64"),
        ({"x": X.T, "y": Y}, r"'x' must have shape \[2, 3\], found \[3, 2\]"),
        ({"x": X, "y": Y[:2]}, r"'y' must have shape \[3\], found \[2\]"),
        ({"x": X[0], "y": Y}, r"'x' must have shape \[2, 3\], found \[3\]"),
        ([X], r"takes 2 inputs \(x, y\), found 1"),
        (
            {"x": "text", "y": Y},
            r"'x' must be an array of x: float32\[2, 3\]; the str that was found makes none",
        ),
    ],
)
def test_refused(executable: Executable, inputs: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        executable.run(inputs)
    # and the executable is none the worse
    np.testing.assert_array_equal(executable.run([X, Y])["z"], X + Y)


def test_strided_and_list_inputs_are_accepted(executable: Executable) -> None:
    wide = np.zeros((2, 6), np.float32)
    wide[:, ::2] = X
    np.testing.assert_array_equal(executable.run({"x": wide[:, ::2], "y": Y})["z"], X + Y)
    np.testing.assert_array_equal(executable.run([X.tolist(), Y.tolist()])["z"], X + Y)


def test_outputs_are_the_callers_own(executable: Executable) -> None:
    first = executable.run([X, Y])["z"]
    kept = first.copy()
    executable.run([X + 1, Y])
    np.testing.assert_array_equal(first, kept)
    first[:] = 0
    np.testing.assert_array_equal(executable.run([X, Y])["z"], X + Y)


def test_closed_executable_says_so() -> None:
    with byoc_mlir.compile(RELU, targets=()) as executable:
        executable.run([np.zeros(4, np.float32)])
    with pytest.raises(ExecutionError, match="closed"):
        executable.run([np.zeros(4, np.float32)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads is 0, accepted are whole numbers, at least 1"),
        ({"precision": "f8"}, "precision is 'f8', accepted are 'f32', 'bf16'"),
        ({"fallback": "maybe"}, "accepted are 'allow', 'warn', 'forbid'"),
        ({"targets": "dnnl"}, "sequence of names"),
        ({"targets": ("dnll",)}, "no backend is named 'dnll'"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ByocError, match=message):
        byoc_mlir.compile(RELU, **options)


def _identity(kind: int, shape: Sequence[int | str]) -> Executable:
    x = helper.make_tensor_value_info("x", kind, shape)
    model = model_of([node("Identity", "x")], {"x": x})
    return byoc_mlir.compile(model, targets=(), fallback="allow")


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (TensorProto.FLOAT, None, "None"),
        (TensorProto.FLOAT, [1.0, None], "it holds None"),
        (TensorProto.FLOAT, ["1.5", "2"], "it holds texts"),
        (TensorProto.INT64, [1.5, 2.0], "not of int64"),
        (TensorProto.INT64, [1.0, float("nan")], "NaN to integer"),
        (TensorProto.BOOL, [float("nan"), 1.0], "not of bool"),
        (TensorProto.UINT8, [256, 0], "uint8"),
        (TensorProto.STRING, ["a", None], r"found None \(NoneType\) as element 1"),
        (TensorProto.STRING, np.array(["a", np.nan], object), r"found nan \(float\) as element 1"),
    ],
    ids=str,
)
def test_what_is_missing_becomes_no_value(kind: int, value: Any, message: str) -> None:
    shape = [] if value is None else [2]
    with pytest.raises(InvalidInputError, match=f"(?s)'x'.*{message}"):
        _identity(kind, shape).run({"x": value})


def test_lists_of_whole_numbers_and_of_nan() -> None:
    assert _identity(TensorProto.INT64, [2]).run({"x": [1.0, 2.0]})["y"].tolist() == [1, 2]
    assert _identity(TensorProto.BOOL, [2]).run({"x": [0, 1.0]})["y"].tolist() == [False, True]
    given = _identity(TensorProto.FLOAT, [2]).run({"x": [0.1, float("nan")]})["y"]
    np.testing.assert_array_equal(given, np.array([0.1, np.nan], np.float32))


@pytest.mark.parametrize(
    "texts",
    [np.array(["a", "béta"]), np.array(["a", "béta".encode()], object), ["a", "béta"]],
    ids=["unicode", "object", "list"],
)
def test_arrays_of_texts(texts: Any) -> None:
    assert _identity(TensorProto.STRING, ["n"]).run({"x": texts})["y"].tolist() == ["a", "béta"]


@pytest.mark.parametrize("size", [3, "n"])
def test_a_scalar_may_be_an_array_of_one_element(size: int | str) -> None:
    model = parsed(f"(float[{size}] x, float s) => (float[{size}] y)", "y = Mul (x, s)")
    executable = byoc_mlir.compile(model, targets=())
    for scale in (2, 3):
        given = {"x": Y, "s": np.array([scale], np.float32)}
        np.testing.assert_array_equal(executable.run(given)["y"], scale * Y)
    with pytest.raises(InvalidInputError, match=r"'s' must have shape \[\], found \[3\]"):
        executable.run({"x": Y, "s": Y})
