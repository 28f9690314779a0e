"""Matmuls of 16-bit floats: summed in `f32`, and rounded only where their type says so."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from byoc_mlir.dialects.relay import ConstantOp, RelayOp, nn, window
from byoc_mlir.dialects.relay.evaluate import evaluate_op

_WINDOW: dict[str, Any] = {"strides": [1], "padding": [0, 0], "dilation": [1]}


def _product(kind: type[RelayOp], a: ConstantOp, b: ConstantOp, **properties: Any) -> RelayOp:
    if issubclass(kind, window.ConvTransposeOp):
        properties["output_padding"] = [0]
    if issubclass(kind, window.WindowOp):
        properties |= _WINDOW
    return kind(a, b, **properties)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize(
    ("kind", "shapes"),
    [
        (nn.DenseOp, [(2, 64), (3, 64)]),
        (nn.MatmulOp, [(2, 64), (64, 3)]),
        (window.Conv1DOp, [(1, 8, 9), (4, 8, 3)]),
        (window.Conv1DTransposeOp, [(1, 8, 9), (8, 4, 3)]),
    ],
)
def test_a_result_of_f32_is_not_rounded(
    kind: type[RelayOp], shapes: list[tuple[int, ...]], dtype: Any
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    a, b = (ConstantOp.of("t", array) for array in arrays)
    (exact,) = evaluate_op(_product(kind, a, b, out_dtype=f32), arrays)
    (rounded,) = evaluate_op(_product(kind, a, b), arrays)
    wide = [array.astype(np.float32) for array in arrays]
    (expected,) = evaluate_op(_product(kind, *(ConstantOp.of("t", array) for array in wide)), wide)
    assert exact.dtype == np.float32
    np.testing.assert_array_equal(exact, expected)
    np.testing.assert_array_equal(rounded, exact.astype(dtype))
