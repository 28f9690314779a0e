"""Addresses of arrays, read from the array objects."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from byoc_mlir.runtime.system.memory import address_of


def _read_only() -> np.ndarray[Any, Any]:
    array = np.arange(6.0)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(12)[5:],
        np.array(2.5),
        np.zeros((0, 4)),
        np.zeros(3, ml_dtypes.bfloat16),
        _read_only(),
        np.frombuffer(b"0123456789abcdef", np.int32),
    ],
    ids=["matrix", "view", "scalar", "empty", "bfloat16", "read_only", "foreign"],
)
def test_is_what_numpy_says(array: np.ndarray[Any, Any]) -> None:
    assert address_of(array) == array.ctypes.data
