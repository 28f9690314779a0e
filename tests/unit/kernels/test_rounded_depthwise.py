"""Depthwise convolutions of `bf16` for vectors of every length."""

from __future__ import annotations

import math

import numpy as np
import pytest
from kernel_runner import (
    DEPTHWISE_CASES,
    Array,
    Compiled,
    DepthwiseCase,
    expected,
    random_arrays,
)
from ml_dtypes import bfloat16
from xdsl.dialects.builtin import bf16

from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel
from byoc_mlir.kernels.convolutions import convolution_kernels
from byoc_mlir.kernels.epilogue import Epilogue
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.runtime.system.cpu import Cpu

UNITS = pytest.mark.parametrize(
    "unit",
    [VectorUnit(4, 16), VectorUnit(8, 16), VectorUnit(16, 32)],
    ids=lambda unit: unit.tile,
)

pytestmark = pytest.mark.skipif(
    "avx512_bf16" not in Cpu.host().features, reason="code for processors that round to bf16"
)

_HALF_STEP = 2.0**-8
"""Largest relative error of rounding to `bf16`."""

_RELU = Epilogue(bias=True, lower=0.0)
_CLIP = Epilogue(bias=True, lower=-0.5, upper=2.0)


def _convolution(channels: int, epilogue: Epilogue = _CLIP) -> Convolution:
    case = DepthwiseCase((9, 17), (3, 3), (1, 1, 1, 1), (1, 1), (1, 1))
    return case.of(channels, epilogue, bf16)


def _kernel(it: Convolution, unit: VectorUnit) -> ConvolutionKernel:
    (kernel,) = convolution_kernels(it, unit)
    return kernel


def _rounded_arrays(it: Convolution) -> dict[str, Array]:
    """Returns arrays rounded to `bf16`, except for the bias."""
    return {
        name: array if name == "b" else array.astype(bfloat16).astype(np.float32)
        for name, array in random_arrays(it).items()
    }


def _check(it: Convolution, unit: VectorUnit) -> None:
    arrays = _rounded_arrays(it)
    found = Compiled(_kernel(it, unit), threads=2)(**arrays)
    np.testing.assert_allclose(found, expected(it, **arrays), rtol=_HALF_STEP, atol=1e-6)


@UNITS
@pytest.mark.parametrize(
    ("case", "epilogue"),
    list(zip(DEPTHWISE_CASES, [_RELU, _CLIP, Epilogue(), Epilogue(upper=0.5), _CLIP], strict=True)),
)
def test_windows(unit: VectorUnit, case: DepthwiseCase, epilogue: Epilogue) -> None:
    _check(case.of(4 * unit.lanes, epilogue, bf16), unit)


@UNITS
@pytest.mark.parametrize("more", [1, 7])
def test_the_last_block_begins_in_the_one_before(unit: VectorUnit, more: int) -> None:
    _check(_convolution(4 * unit.lanes + more), unit)


def test_few_channels_have_shorter_vectors() -> None:
    unit = VectorUnit(16, 32)
    assert _kernel(_convolution(24), unit).unit.lanes == 8
    _check(_convolution(24), unit)
    assert not list(convolution_kernels(_convolution(7), unit))


@UNITS
def test_residuals_are_added_once(unit: VectorUnit) -> None:
    """Checks that whole blocks are added once, since residuals may share the result's memory."""
    epilogue = Epilogue(bias=True, residual=True, lower=0.0)
    it = _convolution(4 * unit.lanes, epilogue)
    arrays = _rounded_arrays(it)
    wanted = expected(it, **arrays)
    found = Compiled(_kernel(it, unit))(**arrays)
    np.testing.assert_allclose(found, wanted, rtol=_HALF_STEP, atol=1e-6)
    odd = _convolution(4 * unit.lanes + 1, epilogue)
    assert not list(convolution_kernels(odd, unit))


@UNITS
def test_special_values_stay(unit: VectorUnit) -> None:
    """Checks that NaN and infinities reach only the windows that have them, and that NaN passes the
    limits.
    """
    it = _convolution(2 * unit.lanes)
    arrays = {name: abs(array) for name, array in _rounded_arrays(it).items()}
    arrays["x"][0, 0, 4, 4], arrays["x"][0, 1, 4, 4] = math.nan, math.inf
    found = Compiled(_kernel(it, unit))(**arrays)
    spoilt = np.zeros(found.shape, bool)
    spoilt[0, 0, 3:6, 3:6] = True
    np.testing.assert_array_equal(np.isnan(found), spoilt)
    np.testing.assert_array_equal(found[0, 1, 3:6, 3:6], 2.0)
