"""Tensors of other libraries as inputs and outputs, without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import parser

import byoc_mlir
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.inference_session import InferenceSession, OrtValue
from byoc_mlir.runtime.arguments import Arguments

MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 18]> net (float[4, 3] x) => (float[4, 3] y) { y = Neg (x) }'
)
X = np.arange(12, dtype=np.float32).reshape(4, 3)


class Foreign:
    """Tensor of another library, with DLPack's two methods only."""

    def __init__(self, array: Any):
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.fixture(scope="module")
def executable() -> byoc_mlir.Executable:
    return byoc_mlir.compile(MODEL, targets=())


def test_an_input_is_read_where_it_is(executable: byoc_mlir.Executable) -> None:
    (taken,) = Arguments(executable.inputs).checked({"x": Foreign(X)})
    assert np.shares_memory(taken, X)
    np.testing.assert_array_equal(executable.run({"x": Foreign(X)})["y"], -X)
    np.testing.assert_array_equal(executable.run([Foreign(X.copy())])["y"], -X)


def test_an_output_is_taken_where_it_is(executable: byoc_mlir.Executable) -> None:
    y = executable.run({"x": X})["y"]
    assert y.__dlpack_device__() == (1, 0)
    assert np.shares_memory(np.from_dlpack(y), y)


def test_other_strides_are_copied_and_right(executable: byoc_mlir.Executable) -> None:
    transposed = np.ascontiguousarray(X.T).T
    np.testing.assert_array_equal(executable.run({"x": Foreign(transposed)})["y"], -X)


def test_sessions_take_and_give_them() -> None:
    session = InferenceSession(MODEL.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"x": Foreign(X)})[0], -X)
    value = OrtValue.from_dlpack(Foreign(X))
    assert value.data_ptr() == X.ctypes.data
    assert np.shares_memory(np.from_dlpack(value), X)
    theirs = onnxruntime.OrtValue.ortvalue_from_numpy(X)
    for name in ("element_type", "tensor_size_in_bytes", "is_sparse_tensor", "is_tensor_sequence"):
        assert getattr(value, name)() == getattr(theirs, name)(), name


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (Foreign(X.astype(np.float64)), r"must be of float32, found float64"),
        (Foreign(X[:2]), r"must have shape \[4, 3\], found \[2, 3\]"),
        (Foreign("no array"), "the Foreign that was found makes none"),
    ],
)
def test_refused(executable: byoc_mlir.Executable, tensor: Foreign, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        executable.run({"x": tensor})


def test_a_value_of_nothing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the int gives no DLPack capsule"):
        OrtValue.from_dlpack(5)
