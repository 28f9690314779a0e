"""Matmuls with constant matrices: the IR after `pack-weights`, and the results."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from helpers.programs import generic_programs, is_symbolic
from host_runner import Array, Network, run_on_host

from byoc_mlir import compile as compile_model
from byoc_mlir.dialects.relay import elementwise, nn
from byoc_mlir.lowering import host_pipeline
from byoc_mlir.lowering.pack_weights import panels
from byoc_mlir.tensors import transposed
from byoc_mlir.testing.networks.builder import GraphBuilder


def _numbers(*shape: int, dtype: type[np.floating] = np.float32) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def test_panels_hold_columns_side_by_side_and_end_in_zeros() -> None:
    matrix = _numbers(5, 21)
    packed = panels(matrix, 8)
    assert packed.shape == (3, 5, 8)
    np.testing.assert_array_equal(packed[1, 2], matrix[2, 8:16])
    np.testing.assert_array_equal(packed[2, :, 5:], np.zeros((5, 3)))


@pytest.mark.values
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("rows", "steps", "units"),
    [
        (3, 4, 16),
        (7, 9, 37),
        (48, 384, 272),
        (200, 700, 33),
        (13, 50, 7),
        (2, 64, 64),
        (7, 1025, 37),
        (8, 1536, 20),
        (9, 513, 16),
        (6, 1100, 40),
    ],
)
@pytest.mark.parametrize("threads", [False, True])
def test_dense_with_bias_and_relu(
    rows: int, steps: int, units: int, dtype: type[np.floating], threads: bool
) -> None:
    data, weight, bias = (
        _numbers(*shape, dtype=dtype) for shape in ((2, rows, steps), (units, steps), (units,))
    )
    network = Network(data)
    product = network.add(nn.DenseOp(network.args[0], network.constant(weight)))
    summed = network.add(elementwise.AddOp(product, network.constant(bias)))
    module = network.returning(network.add(nn.ReluOp(summed)))
    (result,) = run_on_host(module, [data], threads=threads)
    want = np.maximum(data.astype(np.float64) @ weight.T.astype(np.float64) + bias, 0)
    tolerance = 1e-5 if dtype is np.float32 else 1e-13
    np.testing.assert_allclose(result, want, rtol=tolerance, atol=tolerance * np.abs(want).max())


@pytest.mark.values
@pytest.mark.parametrize("vector_bits", [128, 256, 512])
@pytest.mark.parametrize(
    ("rows", "steps"), [(1, 70), (2, 70), (3, 70), (4, 70), (13, 70), (13, 1100)]
)
def test_tiles_that_read_some_panels_at_once(rows: int, steps: int, vector_bits: int) -> None:
    """Checks few rows, and as many as registers hold; with all steps of the panels, or a part."""
    data = _numbers(rows, steps)
    weights = [_numbers(units, steps) for units in (16, 24, 63, 64, 100, 128, 145, 300)]
    network = Network(data)
    products = [
        network.add(nn.DenseOp(network.args[0], network.constant(weight))) for weight in weights
    ]
    module = network.returning(*products)
    with patch.object(host_pipeline, "vector_bits", lambda _: vector_bits):
        results = run_on_host(module, [data])
    for result, weight in zip(results, weights, strict=True):
        np.testing.assert_allclose(result, data @ weight.T, rtol=1e-5, atol=steps * 1e-6)


@pytest.mark.values
@pytest.mark.parametrize("vector_bits", [128, 256, 512])
@pytest.mark.parametrize("steps", [70, 1300])
@pytest.mark.parametrize("units", [7, 24, 64, 300])
def test_rows_whose_number_is_symbolic(units: int, steps: int, vector_bits: int) -> None:
    """Checks matrices in panels, computed ones, and transposed ones."""
    b = GraphBuilder("rows", seed=0)
    x, weight = b.input("x", ["rows", steps]), _numbers(steps, units)
    b.output(b.op("MatMul", x, b.constant(weight)), "packed", ["rows", units])
    b.output(b.op("MatMul", x, b.input("w", [steps, units])), "computed", ["rows", units])
    turned = b.op("Transpose", b.input("v", [units, steps]), perm=[1, 0])
    b.output(b.op("MatMul", x, turned), "turned", ["rows", units])
    with (
        patch.object(host_pipeline, "vector_bits", lambda _: vector_bits),
        compile_model(b.build(), threads=1) as executable,
    ):
        for rows in (3, 1, 0, 2, *range(4, 14), 1):
            data = _numbers(rows, steps)
            results = executable.run({"x": data, "w": weight, "v": weight.T.copy()})
            for result in results.values():
                np.testing.assert_allclose(result, data @ weight, rtol=1e-5, atol=1e-4)
        assert is_symbolic(executable)
        assert len(generic_programs(executable)) == 1


@pytest.mark.parametrize("shape", [(1, 1), (37, 5), (5, 4001), (70, 700), (0, 3), (3, 0)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64])
def test_transposed_copies(shape: tuple[int, int], dtype: type[np.generic]) -> None:
    matrix = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    found = transposed(matrix)
    np.testing.assert_array_equal(found, matrix.T)
    assert found.flags.c_contiguous
    assert found.dtype == dtype
