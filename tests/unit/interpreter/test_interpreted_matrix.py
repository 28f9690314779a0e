"""Matmuls in the interpreter tier: equal to ONNX Runtime's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from single_nodes import check, interpreted, node_model, numbers

from byoc_mlir.interpreter.products import matmul
from byoc_mlir.onednn.engine import openmp_threads
from byoc_mlir.onednn.gemm import sgemm

SHAPES = [
    ((3, 4), (4, 5)),
    ((70, 90), (90, 33)),
    ((1, 300), (300, 200)),
    ((300, 200), (200, 1)),
    ((90,), (90, 400)),
    ((400, 90), (90,)),
    ((9000,), (9000,)),
    ((2, 3, 40, 50), (50, 60)),
    ((2, 3, 40, 50), (2, 3, 50, 60)),
    ((2, 1, 40, 50), (3, 50, 60)),
    ((40, 50), (2, 3, 50, 60)),
    ((2, 40, 50), (50,)),
    ((50,), (2, 50, 60)),
    ((0, 50), (50, 60)),
    ((40, 0), (0, 60)),
    ((0, 40, 50), (1, 50, 60)),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_products_of_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check("MatMul", numbers(*a), numbers(*b, seed=1))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_products_of_types(dtype: Any) -> None:
    check("MatMul", numbers(30, 40, dtype=dtype), numbers(40, 50, dtype=dtype, seed=1))


@pytest.mark.parametrize(
    ("shape", "opset"),
    [
        *itertools.product([(40,), (1, 40), (30, 1), (30, 40), (1,), ()], [7, 9, 11, 13]),
        *((None, opset) for opset in (11, 13)),
    ],
)
@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gemm(opset: int, shape: tuple[int, ...] | None, turned: tuple[int, int]) -> None:
    a = numbers(*((50, 30) if turned[0] else (30, 50)))
    b = numbers(*((40, 50) if turned[1] else (50, 40)), seed=1)
    c = None if shape is None else numbers(*shape, seed=2)
    operands = (a, b) if c is None else (a, b, c)
    attributes = {"transA": turned[0], "transB": turned[1], "alpha": 0.5, "beta": -1.5}
    check("Gemm", *operands, opset=opset, **attributes)


def test_gemm_by_its_defaults() -> None:
    check("Gemm", numbers(3, 50), numbers(50, 7, seed=1), numbers(7, seed=2))


def test_gemm_over_nothing_is_what_is_added() -> None:
    a, b, c = numbers(3, 0), numbers(0, 4), numbers(4)
    model = node_model("Gemm", (a, b, c), 21, beta=0.5)
    found = interpreted(model, (a, b, c), is_constant=False)
    np.testing.assert_array_equal(found, np.broadcast_to(c * np.float32(0.5), (3, 4)))


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_sums_of_nothing_do_not_read_what_was_there(beta: float) -> None:
    c = np.full((3, 4), np.nan if beta == 0.0 else 2.0, np.float32)
    sgemm(numbers(3, 0), numbers(0, 4), c, beta=beta)
    np.testing.assert_array_equal(c, np.full((3, 4), 2.0 * beta, np.float32))


def test_shapes_that_do_not_fit_are_refused() -> None:
    for a, b in (((30, 40), (41, 50)), ((2, 30, 40), (3, 40, 50)), ((30, 40), (1, 50))):
        with pytest.raises(ValueError, match=r"mismatch|broadcast|operands"):
            matmul(numbers(*a), numbers(*b))


INDICES = (slice(None), slice(None, None, 2), slice(None, None, -1), slice(3, None, 3))


@given(
    sizes=st.tuples(*[st.integers(1, 40)] * 3),
    lines=st.tuples(*[st.sampled_from(INDICES)] * 4),
    turned=st.tuples(st.booleans(), st.booleans()),
    numbers_of_c=st.sampled_from([0.0, 1.0, -0.5]),
)
@settings(max_examples=150, deadline=None)
def test_products_of_views(
    sizes: tuple[int, int, int],
    lines: tuple[slice, ...],
    turned: tuple[bool, bool],
    numbers_of_c: float,
) -> None:
    m, k, n = sizes
    shapes = [(k, m) if turned[0] else (m, k), (n, k) if turned[1] else (k, n)]
    views = []
    for (first, second), by, is_turned in zip(shapes, (lines[:2], lines[2:]), turned, strict=True):
        view = numbers(3 * first + 3, 3 * second + 3)[by][:first, :second]
        views.append(view.T if is_turned else view)
    c = numbers(m, n + 2, seed=2)[:, :n]
    expected = 2 * views[0].astype(np.float64) @ views[1] + numbers_of_c * c
    sgemm(views[0], views[1], c, alpha=2.0, beta=numbers_of_c)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def test_products_of_broadcast_views() -> None:
    row, column = (
        np.broadcast_to(numbers(1, 50), (40, 50)),
        np.broadcast_to(numbers(50, 1), (50, 40)),
    )
    np.testing.assert_allclose(matmul(row, column), row @ column, rtol=1e-4, atol=1e-4)


def test_what_does_not_fit_is_refused() -> None:
    a, b, c = numbers(30, 40), numbers(40, 50), numbers(30, 50)
    for matrices in ((a, b, c.T), (a, b.T, c), (a, b, c[:, ::2]), (a, b.astype(np.float64), c)):
        with pytest.raises(ValueError, match=r"accepted|does not fit"):
            sgemm(*matrices)


def test_threads_are_those_that_are_used() -> None:
    a, b = numbers(300, 300), numbers(300, 300, seed=1)
    for count in (1, 2):
        with openmp_threads(count):
            np.testing.assert_allclose(matmul(a, b), a @ b, rtol=1e-3, atol=1e-3)
