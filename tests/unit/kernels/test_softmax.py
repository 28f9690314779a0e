"""Softmax of rows, for vectors of every length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runner import Native, aligned
from numpy.typing import NDArray

from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.softmax import softmax_code

Array = NDArray[Any]

LANES = pytest.mark.parametrize("lanes", [4, 8, 16])


def _run(source: Array, lanes: int) -> Array:
    """Returns the result, and checks that memory after it is unchanged."""
    result = aligned((source.size + 64,))
    result[:] = 7
    rows, columns = source.shape
    Native(softmax_code(rows, columns, lanes)).run({Slot.SOURCE: source, Slot.RESULT: result})
    assert (result[source.size :] == 7).all()
    return result[: source.size].reshape(source.shape)


def _check(found: Array, wanted: Array) -> None:
    """Checks the result; small elements lose as many digits as their logarithm has before the
    point.
    """
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-38)
    is_large = ~(wanted < 1e-3)
    np.testing.assert_allclose(found[is_large], wanted[is_large], rtol=1e-6)


def _wanted(source: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        below = source - source.max(axis=1, keepdims=True)
        exponentials = np.exp(below.astype(np.float64))
        return exponentials / exponentials.sum(axis=1, keepdims=True)


@pytest.mark.values
@LANES
@pytest.mark.parametrize("columns", [1, 3, 8, 13, 16, 17, 31, 64, 97, 197, 300])
def test_rows(columns: int, lanes: int) -> None:
    source = np.random.default_rng(columns).standard_normal((7, columns), np.float32) * 8
    found = _run(source, lanes).astype(np.float64)
    _check(found, _wanted(source))


@pytest.mark.values
@LANES
@pytest.mark.parametrize("columns", [2, 5, 16, 40, 75])
def test_special_numbers(columns: int, lanes: int) -> None:
    """Checks masked and large scores; a row is NaN if it has NaN, an infinity, or only masks."""
    source = np.random.default_rng(0).standard_normal((9, columns), np.float32)
    source[0, 1:] = -np.inf
    source[1, ::2] = -np.inf
    source[2] = -np.inf
    source[3, -1] = np.inf
    source[4, 0] = np.nan
    source[5, -1] = np.nan
    source[6] *= 1e30
    source[7] = np.finfo(np.float32).min
    source[8] = -3e38
    found = _run(source, lanes).astype(np.float64)
    _check(found, _wanted(source))
    assert np.isnan(found[2:6]).all()
