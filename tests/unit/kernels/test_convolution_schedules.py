"""Kernels of convolutions whose code has its parameters as constants, and reads none from
memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_runner import Compiled, convolution, expected, random_arrays
from xdsl.dialects import llvm

from byoc_mlir.dims import symbol
from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel
from byoc_mlir.kernels.convolutions import convolution_kernels
from byoc_mlir.kernels.epilogue import Epilogue
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.schedules import CONSTANTS, Scheduled, schedules_of, with_constants
from byoc_mlir.kernels.vectors import VectorUnit

SSE, AVX2, AVX512 = VectorUnit(4, 16), VectorUnit(8, 16), VectorUnit(16, 32)
UNITS = pytest.mark.parametrize("unit", [SSE, AVX2, AVX512], ids=lambda unit: unit.tile)

_SUM = Epilogue(bias=True, residual=True, lower=-0.5, upper=2.0)


def _kernel(it: Convolution, unit: VectorUnit, name: str) -> ConvolutionKernel:
    return next(one for one in convolution_kernels(it, unit) if one.name == name)


def _check(scheduled: Scheduled, threads: int = 1) -> None:
    """Checks a scheduled kernel; the parameters passed in memory are wrong, so that it must not
    read them.
    """
    it = scheduled.kernel.convolution
    arrays = random_arrays(it)
    wanted = expected(it, **arrays)
    found = Compiled(scheduled, threads)(**arrays)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-5 * abs(wanted).max())


@pytest.mark.values
@UNITS
@pytest.mark.parametrize("threads", [1, 2])
def test_winograd(unit: VectorUnit, threads: int) -> None:
    it = convolution((1, unit.lanes, 19, 25), 3 * unit.lanes, pads=(1, 0, 1, 2), epilogue=_SUM)
    _check(schedules_of(_kernel(it, unit, "f4x3"))[CONSTANTS], threads)


@pytest.mark.values
@UNITS
@pytest.mark.parametrize("channels", [3, 32])
def test_implicit_products(unit: VectorUnit, channels: int) -> None:
    """Checks whole rows of a window, and pixels that may lie outside."""
    pads = (0, 0, 0, 0) if channels == 3 else (2, 1, 1, 0)
    it = convolution(
        (2, channels, 12, 15), 6 * unit.lanes, pads=pads, strides=(2, 1), epilogue=_SUM
    )
    schedules = schedules_of(_kernel(it, unit, "implicit_gemm"))
    assert f"panels=3,{CONSTANTS}" in schedules
    for name in schedules:
        if schedules[name].has_constants:
            _check(schedules[name], threads=2)


@UNITS
def test_depthwise(unit: VectorUnit) -> None:
    channels = 2 * unit.lanes
    it = convolution(
        (2, channels, 9, 17),
        channels,
        pads=(1, 1, 1, 1),
        strides=(2, 2),
        epilogue=_SUM,
        groups=channels,
    )
    _check(schedules_of(_kernel(it, unit, "depthwise"))[CONSTANTS])


def test_convolutions_share_code_that_is_told_the_same_only() -> None:
    module = ModuleBuilder()

    def defined(height: int) -> str:
        it = convolution((1, 16, height, 9), 16, pads=(1, 1, 1, 1))
        return with_constants(_kernel(it, AVX2, "f4x3").code(1)).define(module)

    first, other, again = defined(9), defined(10), defined(9)
    assert first == again != other
    module.module.verify()
    names = [op.sym_name.data for op in module.module.ops if isinstance(op, llvm.FuncOp)]
    assert len(names) == len(set(names))
    assert {"byoc_parallel_for", first, other} <= {*names}


def test_symbolic_sizes_are_no_constants() -> None:
    batch = symbol("batch")
    it = convolution((1, 16, 8, 8), 96, (1, 1))
    source, result = (replace(one, shape=(batch, *one.shape[1:])) for one in (it.source, it.result))
    several = replace(it, source=source, result=result)
    assert schedules_of(_kernel(several, AVX2, "implicit_gemm")).keys() == {"panels=3"}
    assert CONSTANTS in schedules_of(_kernel(it, AVX2, "implicit_gemm"))
