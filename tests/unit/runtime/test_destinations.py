"""`run(inputs, out=...)`: outputs in arrays of the caller's own."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from functools import cache
from itertools import combinations, starmap
from typing import Any

import numpy as np
import pytest
from helpers.models import parsed
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, parser

import byoc_mlir
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.runtime import Executable, destinations
from byoc_mlir.runtime.system.memory import address_of

_TWO_OUTPUTS = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[N, 3] x) => (float[N, 3] double, float[3] total) {
  double = Add(x, x)
  axes = Constant<value_ints = [0]>()
  total = ReduceSum<keepdims = 0>(x, axes)
}
"""
_CHOSEN = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[4] x) => (float[M] y) {
  zero = Constant<value_float = 0.0>()
  condition = Greater(x, zero)
  y = Compress(x, condition)
}
"""
_X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def _compiled(sizes: str) -> Executable:
    return byoc_mlir.compile(_parsed(_TWO_OUTPUTS.replace("N", sizes)), targets=())


def _parsed(text: str) -> ModelProto:
    return parser.parse_model(text)


@pytest.mark.parametrize("sizes", ["2", "N"])
def test_outputs_are_written_into_the_arrays(sizes: str) -> None:
    with _compiled(sizes) as executable:
        double, total = np.empty((2, 3), np.float32), np.empty(3, np.float32)
        found = executable.run({"x": _X}, out={"double": double, "total": total})
        assert found["double"] is double
        assert found["total"] is total
        np.testing.assert_array_equal(double, _X * 2)
        np.testing.assert_array_equal(total, _X.sum(0))


def test_what_is_not_named_is_a_new_array() -> None:
    with _compiled("2") as executable:
        total = np.empty(3, np.float32)
        found = executable.run([_X], out={"total": total})
        np.testing.assert_array_equal(found["double"], _X * 2)
        assert found["total"] is total


def test_a_model_in_stages_copies() -> None:
    with byoc_mlir.compile(_parsed(_CHOSEN), targets=()) as executable:
        y = np.empty(2, np.float32)
        x = np.array([1, -1, 2, -2], np.float32)
        assert executable.run({"x": x}, out={"y": y})["y"] is y
        np.testing.assert_array_equal(y, [1, 2])
        with pytest.raises(InvalidInputError, match=r"must be float32\[1\], found float32\[2\]"):
            executable.run({"x": np.array([1, -1, -2, -2], np.float32)}, out={"y": y})


_BAD: dict[str, tuple[Any, str]] = {
    "no mapping": ([], "out is"),
    "unknown name": ({"z": _X}, "out has z; the model's outputs are double, total"),
    "no array": ({"total": [0.0] * 3}, "'total' must be a numpy array, found list"),
    "dtype": ({"total": np.empty(3)}, r"must be float32\[3\], found float64\[3\]"),
    "shape": ({"total": np.empty(4, np.float32)}, r"must be float32\[3\], found float32\[4\]"),
    "strides": ({"total": np.empty(6, np.float32)[::2]}, "must be a C-contiguous array"),
    "read only": ({"total": np.broadcast_to(np.float32(0), 3)}, "that can be written"),
    "an input": ({"double": _X}, "'double' is in memory that an input has"),
}


@pytest.mark.parametrize("case", _BAD)
def test_refused(case: str) -> None:
    out, message = _BAD[case]
    with _compiled("2") as executable, pytest.raises(InvalidInputError, match=message):
        executable.run({"x": _X}, out=out)


def test_two_outputs_in_the_same_memory_are_refused() -> None:
    memory = np.empty(9, np.float32)
    out = {"double": memory[:6].reshape(2, 3), "total": memory[5:8]}
    with _compiled("2") as executable, pytest.raises(InvalidInputError, match="same memory"):
        executable.run({"x": _X}, out=out)


@given(places=st.tuples(*[st.integers(0, 12)] * 3))
def test_arrays_that_share_memory_are_refused(places: tuple[int, int, int]) -> None:
    memory = np.ones(18, np.float32)
    sizes = (6, 6, 3)
    x, double, total = (memory[at : at + n] for at, n in zip(places, sizes, strict=True))
    x, double = x.reshape(2, 3), double.reshape(2, 3)
    is_shared = any(starmap(np.may_share_memory, combinations((x, double, total), 2)))
    refused = pytest.raises(InvalidInputError, match="memory") if is_shared else nullcontext()
    with refused:
        _shared().run({"x": x}, out={"double": double, "total": total})


@cache
def _shared() -> Executable:
    return _compiled("2")


def test_calls_with_many_outputs_compare_no_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"y{number}" for number in range(60)]
    body = "\n".join(f"{name} = Add(x, x)" for name in names)
    outputs = ", ".join(f"float[3] {name}" for name in names)
    out = {name: np.empty(3, np.float32) for name in names}
    counted = Counter[str]()

    def counting(array: np.ndarray[Any, Any]) -> int:
        counted["arrays"] += 1
        return address_of(array)

    monkeypatch.setattr(destinations, "address_of", counting)
    with byoc_mlir.compile(parsed(f"(float[3] x) => ({outputs})", body), targets=()) as executable:
        executable.run({"x": _X[0]}, out=out)
    assert len(names) < counted["arrays"] < 3 * len(names)


def test_an_output_that_is_no_tensor_is_refused() -> None:
    model = parsed("(float[2, 3] x) => (seq(float[2, 3]) y)", "y = SequenceConstruct (x, x)")
    with (
        byoc_mlir.compile(model, targets=()) as executable,
        pytest.raises(InvalidInputError, match="'y', which is no tensor but a list"),
    ):
        executable.run({"x": _X}, out={"y": _X})
