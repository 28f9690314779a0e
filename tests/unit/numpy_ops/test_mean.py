"""Means as in numpy, without its warnings on standard error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from byoc_mlir.numpy_ops.reduction import mean


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0, 0), (3, 2)])
@pytest.mark.parametrize("keepdims", [True, False])
def test_nothing_is_said_about_the_mean_of_nothing(shape: tuple[int, ...], keepdims: bool) -> None:
    data = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = data.mean(1, keepdims=keepdims)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        found = mean(data, (1,), keepdims)
    np.testing.assert_array_equal(found, expected, strict=True)
