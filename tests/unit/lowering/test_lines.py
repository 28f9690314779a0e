"""Matmuls with a computed operand B that is stored transposed: it is read in place, or transposed
block by block.
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from host_runner import Array, Network, run_on_host

from byoc_mlir.dialects.relay import elementwise, nn
from byoc_mlir.lowering import host_pipeline


def _numbers(*shape: int, dtype: type[np.floating] = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def _check(shape: tuple[int, int, int], dtype: type[np.floating], threads: bool) -> None:
    """Checks a matmul, and an op after it in place."""
    rows, steps, units = shape
    arrays = [_numbers(*one, dtype=dtype) for one in ((rows, steps), (units, steps), (rows, units))]
    network = Network(*arrays)
    data, weight, residual = network.args
    product = network.add(nn.DenseOp(data, weight))
    module = network.returning(network.add(elementwise.AddOp(product, residual)))
    (result,) = run_on_host(module, arrays, threads=threads)
    x, w, r = (array.astype(np.float64) for array in arrays)
    want = x @ w.T + r
    tolerance = 1e-5 if dtype is np.float32 else 1e-13
    np.testing.assert_allclose(result, want, rtol=0, atol=tolerance * np.abs(want).max())


@pytest.mark.values
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 13, 32])
@pytest.mark.parametrize(("steps", "units"), [(128, 12), (131, 1), (263, 13), (700, 131)])
def test_few_rows(rows: int, steps: int, units: int) -> None:
    _check((rows, steps, units), np.float32, threads=False)


@pytest.mark.parametrize(("steps", "units"), [(7, 8), (8, 7), (16, 16), (131, 37), (700, 131)])
def test_many_rows(steps: int, units: int) -> None:
    _check((33, steps, units), np.float32, threads=False)


@pytest.mark.values
@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [6, 40])
def test_every_length_of_vectors(rows: int, dtype: type[np.floating], bits: int) -> None:
    with patch.object(host_pipeline, "vector_bits", lambda _: bits):
        _check((rows, 139, 45), dtype, threads=False)


@pytest.mark.parametrize("rows", [1, 9, 300])
def test_threads(rows: int) -> None:
    _check((rows, 600, 700), np.float32, threads=True)


def test_what_is_not_finite_stays_where_it_is() -> None:
    data, weight = _numbers(3, 131), _numbers(5, 131)
    data[1, 130], weight[4, 0] = np.inf, np.nan
    network = Network(data, weight)
    module = network.returning(network.add(nn.DenseOp(*network.args)))
    (result,) = run_on_host(module, [data, weight])
    want = data.astype(np.float64) @ weight.T.astype(np.float64)
    np.testing.assert_array_equal(np.isfinite(result), np.isfinite(want))
